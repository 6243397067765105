"""What a call leaves in the log: its message and its record; and what makes a run a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from swarm_ui.engine.limits import Expired
from swarm_ui.errors import Failure, NodeError
from swarm_ui.json_text import encodable
from swarm_ui.message import Message
from swarm_ui.model import Completion, Generation
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.trace.records import Call


class Unanswered(Exception):
    """A node asked a question to which there is no answer yet; its call is made later."""


class Recalled(Exception):
    """A call failed in the record, and fails in the same way again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def reason_of(failure: BaseException, node: str) -> Failure:
    """Why a call of a node failed."""
    if isinstance(failure, Recalled):
        return msgspec.structs.replace(failure.failure, node=node)
    if isinstance(failure, Expired):
        return Failure(kind="timeout", message=str(failure), node=node)
    return Failure.of(failure, node=node)


def call_of(
    reply: NodeReply | Message,
    context: NodeContext,
    heard: tuple[str, ...],
    started: float,
    ended: float,
    error: Failure | None,
) -> Call:
    """The record of a call; its message has the id, sender and round of the call, regardless of
    the reply.

    Args:
        heard: ids of the received messages.
        started, ended: in seconds since the run began.
        error: why it failed, if it did.
    """
    content = reply.content if reply.content.isascii() else encodable(reply.content)
    told = reply.error if reply.error is None else encodable(reply.error)
    if isinstance(reply, Message):
        message = msgspec.structs.replace(
            reply,
            id=context.message_id,
            sender=context.node,
            round=context.round,
            content=content,
            error=told,
        )
        reply = _NO_REPLY
    else:
        message = Message(
            id=context.message_id,
            sender=context.node,
            round=context.round,
            content=content,
            action=reply.action,
            error=told,
            prompt_format=(reply.completion or reply).prompt_format,
            abstains=reply.abstains,
        )
    return Call(
        message=message,
        completion=None if reply.completion is None else _generation(reply.completion),
        heard=heard,
        order=reply.order,
        temperature=reply.temperature,
        seed=reply.seed,
        ballot=reply.ballot,
        started=started,
        ended=ended,
        error=error,
    )


_NO_REPLY = NodeReply()


def _generation(completion: Completion) -> Generation:
    """How a reply was made, without the reply, which the message holds."""
    found = msgspec.convert(completion, Generation, from_attributes=True)
    if found.prompt.isascii() and found.model.isascii():
        return found
    prompt, model = encodable(found.prompt), encodable(found.model)
    return msgspec.structs.replace(found, prompt=prompt, model=model)


def hears_the_same(call: Call, inbox: Sequence[Message], past: Mapping[str, Call]) -> bool:
    """Whether a recorded call received exactly these messages."""
    if len(call.heard) != len(inbox):
        return False
    for heard, message in zip(call.heard, inbox, strict=True):
        if heard != message.id:
            return False
        before = past.get(heard)
        if before is None or (before.message is not message and before.message != message):
            return False
    return True


def succeeded(call: Call) -> bool:
    """Whether a node answered. A vote or a nested graph that received only failures and a step
    inside a node are no answers; a model's unusable reply is one."""
    if call.step is not None or call.error is not None:
        return False
    return call.message.error is None or call.completion is not None


def first_failure(calls: Iterable[Call]) -> Call | None:
    """The first failed call, if no node succeeded; else ``None``."""
    first = None
    for call in calls:
        if succeeded(call):
            return None
        if first is None and call.error is not None:
            first = call
    return first


def node_error(kind: type[NodeError], told: str, call: Call, run: str) -> NodeError:
    """The error of a run that a node's failure ends, of the failure's kind."""
    error = kind(told, node=call.node, round=call.round, run=run)
    if call.error is not None:
        error.kind = call.error.kind
    elif call.completion is not None:
        error.kind = "reply"
    return error
