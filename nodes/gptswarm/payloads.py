"""What GPTSwarm operations hand each other, and what our messages carry of it.

GPTSwarm passes dictionaries by reference: ``{"operation": ..., "task": ..., "output": ...}`` and
more. A message is text that a trace can hold and a replay can read back, so the dictionaries
travel as JSON in an envelope that names them; everything else that is heard counts as the
``output`` of somebody.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from swarm_ui.errors import SwarmError
from swarm_ui.message import Message
from swarm_ui.node import NodeContext
from swarm_ui.observation import render

Record = dict[str, Any]
Sends = Literal["text", "records"]
MakeTask = Callable[[NodeContext], Record]

_ENVELOPE = "gptswarm"


class Unsayable(SwarmError):
    """An operation answered with something that a message cannot carry."""


def task_of(context: NodeContext) -> Record:
    """What GPTSwarm's own examples give a graph: the task is the goal, and the screen if any."""
    screen = context.observation
    text = f"{screen.goal}\n\n{render(screen)}" if screen.elements else screen.goal
    return {"task": text, "files": [], "GT": ""}


def joined(task: Mapping[str, Any], heard: Sequence[Message]) -> Record:
    """The task with what was heard written under it."""
    said = [f"{m.sender}: {plain(m.content)}" for m in heard if m.content]
    if not said:
        return dict(task)
    return {**task, "task": "\n\n".join([str(task.get("task", "")), "What others said:", *said])}


def seal(outputs: Sequence[Any]) -> str:
    """Outputs of an operation as text that :func:`opened` reads back.

    An ``input`` that is not text is left out: it repeats all that the operation itself heard, so
    that a history would double with every operation on the way, and no operation reads it.
    """
    slim = [_without_history(output) for output in outputs]
    return _dumps({_ENVELOPE: slim})


def opened(message: Message, task: Mapping[str, Any]) -> list[Any]:
    """Outputs in a message; a message of any other node is one output of its sender."""
    if message.error is not None and not message.content:
        return []  # a tombstone: in GPTSwarm, too, a failed operation has no outputs
    sealed = _unsealed(message.content)
    if sealed is not None:
        return sealed
    words = {"operation": message.sender, "output": message.content}
    return [{**task, "subtask": task.get("task", ""), **words}]


def plain(content: str) -> str:
    """What a person would read in a message."""
    sealed = _unsealed(content)
    if sealed is None:
        return content
    return "\n".join(answer([output]) for output in sealed)


def answer(outputs: Sequence[Any]) -> str:
    """The answer among the outputs, as ``Graph.run`` picks it: that of the last."""
    last = outputs[-1]
    value = last.get("output", last) if isinstance(last, dict) else last
    if value is None:
        raise Unsayable("the operation answered with None instead of an output")
    return value if isinstance(value, str) else _dumps(value)


def _without_history(output: Any) -> Any:
    if isinstance(output, dict) and not isinstance(output.get("input", ""), str):
        return {key: value for key, value in output.items() if key != "input"}
    return output


def _dumps(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError as error:
        raise Unsayable(
            f"the answer cannot travel as text ({error}). Run the agent whole, as a "
            "GPTSwarmGraph, whose operations hand each other objects; if it is the agent's own "
            "answer, have its last operation put text under 'output'"
        ) from error


def _unsealed(content: str) -> list[Any] | None:
    if not content.startswith('{"' + _ENVELOPE):
        return None
    try:
        found = json.loads(content)
    except ValueError:
        return None  # somebody's words that only begin like ours
    outputs = found.get(_ENVELOPE)
    return outputs if isinstance(outputs, list) and len(found) == 1 else None
