"""What a call leaves in the log: its message and its record; and what makes a run a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from swarm_ui.errors import ConfigError, Failure, NodeError, SwarmError
from swarm_ui.json_text import encodable
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.trace.records import Call, RecordedCall


class Expired(Exception):
    """The time limit of a call has passed."""


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


def message_of(reply: NodeReply | Message, context: NodeContext) -> Message:
    """The message of a call. Its id, sender and round are those of the call, regardless of the
    reply."""
    content = reply.content if reply.content.isascii() else encodable(reply.content)
    error = reply.error if reply.error is None else encodable(reply.error)
    if isinstance(reply, Message):
        return msgspec.structs.replace(
            reply,
            id=context.message_id,
            sender=context.node,
            round=context.round,
            content=content,
            error=error,
        )
    return Message(
        id=context.message_id,
        sender=context.node,
        round=context.round,
        content=content,
        action=reply.action,
        adapter=reply.adapter,
        logprob=_known(reply.logprob),
        usage=reply.usage,
        error=error,
        prompt_format=reply.prompt_format,
        abstains=reply.abstains,
    )


def call_of(
    reply: NodeReply | Message,
    message: Message,
    heard: tuple[str, ...],
    started: float,
    ended: float,
    error: Failure | None,
) -> Call:
    """The record of the call that produced a message.

    Args:
        heard: ids of the received messages.
        started, ended: in seconds since the run began.
        error: why it failed, if it did.
    """
    if isinstance(reply, Message):
        reply = NodeReply(adapter=reply.adapter, logprob=reply.logprob, usage=reply.usage)
    # Not more than fifteen arguments: above that Python builds a dictionary for every call.
    call = Call(
        message=message.id,
        node=message.sender,
        round=message.round,
        heard=heard,
        order=reply.order,
        adapter=reply.adapter,
        model=encodable(reply.model),
        temperature=reply.temperature,
        seed=reply.seed,
        logprob=_known(reply.logprob),
        usage=reply.usage,
        ballot=reply.ballot,
        started=started,
        ended=ended,
    )
    if not reply.prompt and error is None:
        return call
    return msgspec.structs.replace(
        call,
        prompt=encodable(reply.prompt),
        reply=message.content if reply.prompt else "",
        dropped=reply.dropped,
        error=error,
        sampled=reply.sampled,
    )


def _known(logprob: float | None) -> float | None:
    """A log-probability that JSON can hold; that of an impossible reply counts as unknown."""
    return None if logprob is None or logprob - logprob != 0.0 else logprob


def hears_the_same(call: Call, inbox: Sequence[Message], past: Mapping[str, RecordedCall]) -> bool:
    """Whether a recorded call received exactly these messages."""
    if len(call.heard) != len(inbox):
        return False
    for heard, message in zip(call.heard, inbox, strict=True):
        if heard != message.id:
            return False
        before = past.get(heard)
        if before is None or (before[0] is not message and before[0] != message):
            return False
    return True


# -- runs that fail ---------------------------------------------------------------------------


def succeeded(message: Message, call: Call) -> bool:
    """Whether a node answered. A vote or a nested graph that received only failures and a step
    inside a node are no answers; a model's unusable reply is one."""
    if call.step is not None or call.error is not None:
        return False
    return message.error is None or bool(call.model or call.prompt)


def first_failure(pairs: Iterable[RecordedCall]) -> Call | None:
    """The first failed call, if no node succeeded; else ``None``."""
    first = None
    for message, call in pairs:
        if succeeded(message, call):
            return None
        if first is None and call.error is not None:
            first = call
    return first


def node_error(kind: type[NodeError], told: str, call: Call, run: str) -> NodeError:
    """The error of a run that a node's failure ends, of the failure's kind."""
    error = kind(told, node=call.node, round=call.round, run=run)
    if call.error is not None:
        error.kind = call.error.kind
    elif call.model or call.prompt:
        error.kind = "reply"
    return error


def until_error(
    told: str, newest: Mapping[str, Message], log: Mapping[str, RecordedCall], run: str
) -> SwarmError:
    """The error of a run whose ``until`` failed: that of the first node without an answer, whose
    message it may have read; else one of the configuration."""
    for message in newest.values():
        if message.error is not None:
            call = log[message.id][1]
            return node_error(NodeError, f"{message.error}; {told}", call, run)
    return ConfigError(
        f"{told}. It gets the newest message of each agent that has answered: {', '.join(newest)}"
    )
