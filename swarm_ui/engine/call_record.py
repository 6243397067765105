"""Converts the answer of a node to a message and a call record with the node's identity."""

from __future__ import annotations

import msgspec

from swarm_ui.errors import Failure
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
