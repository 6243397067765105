"""Reads and writes the calls of AutoWebBench, such as ``click('SD')``.

The official scorer passes a model's reply to Python's ``eval``. This module parses the call and
accepts only literals as arguments, so no code from a reply is run.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action, ActionType

_CALL = re.compile(r"(\w+)\((.*)\)")
_LONG_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r"})

# Positions of the element and of the parameter among the arguments; ``None`` for neither.
_PLACES: dict[str, tuple[int | None, int | None]] = {
    "click": (0, None), "hover": (0, None), "select": (0, 1), "type_string": (0, 1),
} | dict.fromkeys(("scroll_page", "go", "jump_to", "switch_tab", "user_input", "finish"), (None, 0))  # fmt: skip  # noqa: E501
FUNCTIONS = tuple(_PLACES)
_POINTED: dict[str, ActionType] = {
    "click": "click", "hover": "long_press", "type_string": "input_text", "select": "select",
}  # fmt: skip


class Call(msgspec.Struct, frozen=True):
    """A call as both scorers compare it. All fields are ``None`` if the text has no call."""

    function: str | None = None
    element: object = None
    """Id of the element. A model may write any literal here."""
    parameter: object = None
    """Option, text, direction, address, tab, message or answer."""


def official_call(text: str) -> Call | None:
    """A call as the official scorer reads it; ``None`` if that scorer raises an error and drops the
    step.

    The official scorer reads the first line only. It raises if the arguments are not valid Python
    (such as an id without quotes, or a text with a line break) or if one is missing (such as in
    ``finish()``). Here it also counts as an error if ``eval`` could compute an argument that is
    not a literal.
    """
    found = _CALL.match(text)
    if found is None:
        return Call()
    arguments = _literals(found[2])
    if arguments is None:
        return None
    needed = 1 + max((place or 0 for place in _PLACES.get(found[1], ())), default=-1)
    return None if len(arguments) < needed else _call(found[1], arguments)


def strict_call(text: str) -> Call:
    """A call as the strict scorer reads it. An unreadable call counts as wrong.

    A text may contain line breaks, and a missing argument is ``None``.
    """
    text = text.strip()
    first = _CALL.match(text)
    found = first if first and _literals(first[2]) is not None else _LONG_CALL.match(text)
    arguments = _literals(found[2].translate(_BREAKS)) if found else None
    if found is None or arguments is None:
        return Call()
    return _call(found[1], arguments)


def _call(function: str, arguments: Sequence[object]) -> Call:
    given: dict[int | None, object] = dict(enumerate(arguments))
    return Call(function, *map(given.get, _PLACES.get(function, ())))


def _literals(arguments: str) -> tuple[object, ...] | None:
    """Arguments of a call; ``None`` if one is not a positional literal."""
    try:
        with warnings.catch_warnings(action="ignore"):  # such as of "\d" in a text
            tree = ast.parse(f"f({arguments})", mode="eval").body
        if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
            return None
        return tuple(ast.literal_eval(argument) for argument in tree.args)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def to_text(action: Action, element: str) -> str:
    """The call for an agent's action. Empty if there is no call for it.

    Args:
        action: the action. ``long_press`` stands for ``hover``, ``open_app`` for ``jump_to``,
            ``answer`` and ``status`` "complete" for ``finish``, and ``status`` "infeasible" for
            ``user_input``, because only the user can continue.
        element: id of the element that the action points at, or empty.
    """
    kind, text = action.action_type, action.text or ""
    if kind == "scroll" and action.direction not in ("up", "down"):
        return ""
    if kind == "status" and action.goal_status == "infeasible":
        return f"user_input({text!r})"
    return {
        "click": f"click({element!r})",
        "long_press": f"hover({element!r})",
        "input_text": f"type_string({element!r}, {text!r}, False)",
        "select": f"select({element!r}, {text!r})",
        "scroll": f"scroll_page({action.direction!r})",
        "navigate_back": "go('backward')",
        "open_app": f"jump_to({action.app_name!r}, False)",
        "answer": f"finish({text!r})",
        "status": "finish()",
    }.get(kind, "")


def to_action(call: Call, index: int | None, label: str = "") -> Action | None:
    """The action that corresponds to a call; ``None`` if there is none.

    Args:
        call: a recorded call.
        index: index of its element on the screen; ``None`` if the element is not there.
        label: label of the element.
    """
    text = "" if call.parameter is None else str(call.parameter)
    target = label or None
    if call.element is not None:
        kind = _POINTED.get(call.function or "")
        if index is None or kind is None:
            return None
        typed = text if kind in ("input_text", "select") else None
        return Action(action_type=kind, target=target, index=index, text=typed)
    match call.function, text:
        case "scroll_page", ("up" | "down") as way:
            return Action(action_type="scroll", direction="up" if way == "up" else "down")
        case "go", "backward":
            return Action(action_type="navigate_back")
        case "jump_to", address if address:
            return Action(action_type="open_app", app_name=address)
        case "finish", "":
            return Action(action_type="status", goal_status="complete")
        case "finish", _:
            return Action(action_type="answer", text=text)
        case "user_input", _:
            return Action(action_type="status", goal_status="infeasible", text=text or None)
    return None
