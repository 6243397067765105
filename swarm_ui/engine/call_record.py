"""Converts the answer of a node to a message and a call record with the node's identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from swarm_ui.errors import ConfigError, Failure, NodeError, SwarmError
from swarm_ui.json_text import encodable
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.trace.records import Call


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
        logprob=reply.logprob,
        usage=reply.usage,
        error=error,
        prompt_format=reply.prompt_format,
        abstains=reply.abstains,
    )


def called(
    reply: NodeReply | Message,
    message: Message,
    heard: tuple[str, ...],
    times: tuple[float, float],
    error: Failure | None,
    rescued: Failure | None,
) -> Call:
    """The record of the call that produced a message.

    Args:
        heard: ids of the received messages.
        times: when it started and ended, in seconds since the run began.
        error: why it failed, if it did.
        rescued: why the node itself failed, if its fallback answered.
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
        logprob=reply.logprob,
        usage=reply.usage,
        ballot=reply.ballot,
        started=times[0],
        ended=times[1],
    )
    if not reply.prompt and error is None and rescued is None:
        return call
    return msgspec.structs.replace(
        call,
        prompt=encodable(reply.prompt),
        reply=message.content if reply.prompt else "",
        dropped=reply.dropped,
        error=error,
        rescued=rescued,
        sampled=reply.sampled,
    )


def succeeded(message: Message, call: Call) -> bool:
    """Whether a node answered. A vote or a nested graph that received only failures, a step inside
    a node and an item of a mapped graph are no answers; a model's unusable reply is one."""
    if call.step is not None or call.error is not None or call.node.endswith("/item"):
        return False
    return message.error is None or bool(call.model or call.prompt)


def first_failure(pairs: Iterable[tuple[Message, Call]]) -> Call | None:
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
    if isinstance(call.error, Failure):
        error.kind = call.error.kind
    elif call.model or call.prompt:
        error.kind = "reply"
    return error


def until_error(
    told: str, newest: Mapping[str, Message], calls: Iterable[Call], run: str
) -> SwarmError:
    """The error of a run whose ``until`` failed: that of the first node without an answer, whose
    message it may have read; else one of the configuration."""
    lost = {message.id: message.error for message in newest.values() if message.error is not None}
    for call in calls:
        if call.message in lost:
            return node_error(NodeError, f"{lost[call.message]}; {told}", call, run)
    return ConfigError(
        f"{told}. It gets the newest message of each agent that has answered: {', '.join(newest)}"
    )


def is_step(call: Call, id: str) -> bool:
    """Whether a call is a step of the call with this id, and not of one further inside."""
    return call.step is not None and call.message.rpartition("/")[0] == id
