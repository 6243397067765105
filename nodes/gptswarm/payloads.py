"""The outputs of GPTSwarm operations as the content of our messages.

GPTSwarm passes dictionaries by reference. Our messages are text, so the dictionaries are written
as JSON under one key; any other message counts as the ``output`` of its sender.
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

_KEY = "gptswarm"


class NotSerializable(SwarmError):
    """An operation answered with something that cannot be written as text."""


def task_of(context: NodeContext) -> Record:
    """The task as in GPTSwarm's own examples: the goal, and the screen if there is one."""
    screen = context.observation
    text = f"{screen.goal}\n\n{render(screen)}" if screen.elements else screen.goal
    return {"task": text, "files": [], "GT": ""}


def with_messages(task: Mapping[str, Any], inbox: Sequence[Message]) -> Record:
    """The task with the messages of the inbox appended."""
    said = [f"{m.sender}: {readable(m.content)}" for m in inbox if m.content]
    if not said:
        return dict(task)
    return {**task, "task": "\n\n".join([str(task.get("task", "")), "What others said:", *said])}


def encode_outputs(outputs: Sequence[Any]) -> str:
    """Outputs of an operation as text for :func:`decode_outputs`.

    An ``input`` that is not text is left out. It repeats the inputs of the operation, so the text
    would double in size with every operation of a chain, and no operation reads it.
    """
    kept = [
        {k: v for k, v in output.items() if k != "input" or isinstance(v, str)}
        if isinstance(output, dict)
        else output
        for output in outputs
    ]
    return _dumps({_KEY: kept})


def decode_outputs(message: Message, task: Mapping[str, Any]) -> list[Any]:
    """The outputs in a message; a message of any other node is one output of its sender."""
    if message.error is not None and not message.content:
        return []  # the node failed: in GPTSwarm, too, a failed operation has no outputs
    outputs = _decoded(message.content)
    if outputs is not None:
        return outputs
    words = {"operation": message.sender, "output": message.content}
    return [{**task, "subtask": task.get("task", ""), **words}]


def readable(content: str) -> str:
    """The content of a message as a person would read it."""
    outputs = _decoded(content)
    return content if outputs is None else "\n".join(answer([each]) for each in outputs)


def answer(outputs: Sequence[Any]) -> str:
    """The answer of the last output, which ``Graph.run`` returns."""
    last = outputs[-1]
    value = last.get("output", last) if isinstance(last, dict) else last
    if value is None:
        raise NotSerializable("the output of the operation is None")
    return value if isinstance(value, str) else _dumps(value)


def _dumps(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError as error:
        raise NotSerializable(
            f"the output of a GPTSwarm operation cannot be written as JSON ({error}). Run the "
            "whole agent as one GPTSwarmGraph, whose operations can exchange objects; if it is the "
            "agent's own answer, let its last operation put text under 'output'"
        ) from error


def _decoded(content: str) -> list[Any] | None:
    if not content.startswith('{"' + _KEY):
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None  # a text that only begins like encoded outputs
    outputs = found.get(_KEY)
    return outputs if isinstance(outputs, list) and len(found) == 1 else None
