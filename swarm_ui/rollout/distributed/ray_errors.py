"""Shortens the texts of Ray's errors, which have many lines, to one line."""

from __future__ import annotations

import re

from swarm_ui.errors import brief

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RAISED = re.compile(r"[\w.]*(Error|Exception|Failure)\b.*: ")
"""The line of a traceback that names the exception."""
_FIELDS = ("class_name:", "actor_id:", "pid:", "namespace:", "ip:", "name:")
"""Beginnings of lines about the actor, which our errors name themselves."""
_BEGINNING = "The actor died unexpectedly before finishing this task. "
_END = " Some common causes"


def reason(error: BaseException) -> str:
    """The reason that Ray gives for a failure, in one line; of a traceback, only the last
    exception.
    """
    lines = [_COLOUR.sub("", line).strip() for line in str(error).splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    if raised:
        return brief(Exception(raised[-1]))
    told = " ".join(line for line in lines if line and not line.startswith(_FIELDS))
    text = told.removeprefix(_BEGINNING).partition(_END)[0]
    return brief(Exception(text or type(error).__name__), most=250)
