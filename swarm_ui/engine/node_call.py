"""Calls one node: waits for a slot, sets the time limit, and checks the type of the answer. It also
describes why a call failed.
"""

from __future__ import annotations

import asyncio
from math import inf

import msgspec

from swarm_ui.engine.deadlines import Ticket
from swarm_ui.engine.run_context import RunContext
from swarm_ui.engine.schedule import Schedule
from swarm_ui.errors import Failure
from swarm_ui.graph.mapped_graph import inner_graph
from swarm_ui.message import Message
from swarm_ui.node import Node, NodeContext, NodeReply


class Expired(Exception):
    """The time limit of a call has passed."""


class FailedBefore(Exception):
    """A call failed before the run was resumed, and fails in the same way again."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


Answer = tuple[NodeReply | Message, Failure | None, Failure | None]
"""The reply; why the call failed (the reply is then a tombstone); and why the node failed, if its
fallback answered."""


async def ask(
    node: Node,
    plan: Schedule,
    k: int,
    inbox: list[Message],
    context: NodeContext,
    task: asyncio.Task[None],
) -> NodeReply | Message:
    """The answer of the node of call ``k``, or of its fallback, within the limits of the run.

    A fallback that has no time limit of its own has that of the node, unless it is a graph.

    Raises:
        Expired: the time limit passed before there was an answer.
        TypeError: the answer is neither a NodeReply nor a Message.
        Exception: whatever the node raises.
    """
    session = context.session
    nested, seconds = plan.nested[k], plan.timeouts[k]
    if node is not plan.nodes[k]:
        nested, own = inner_graph(node) is not None, getattr(node, "timeout", None)
        seconds = own if nested or own is not None else seconds
    gate = None if nested else session.gate  # the calls inside a graph need the slots
    if gate is not None:
        await gate.acquire()
    try:
        bounded = False
        if not nested:
            bounded = session.end < inf and not plan.closes[k]
            if seconds is None:
                seconds = session.limits.timeout
        if seconds is None and not bounded:
            reply = await node(inbox, context)
        else:
            ticket = _watch(session, task, seconds, bounded)
            try:
                reply = await node(inbox, context)
            except asyncio.CancelledError:
                # Ours only if the time ran out and nothing else cancels the run.
                if not session.deadlines.fired(ticket) or task.cancelling() > 1:
                    raise
                raise _expired(session, seconds, bounded) from None
            finally:
                if session.deadlines.close(ticket):
                    task.uncancel()
    finally:
        if gate is not None:
            gate.release()
    if type(reply) is not NodeReply and not isinstance(reply, Message):
        raise TypeError(f"answered with a {type(reply).__name__}, not a NodeReply")
    return reply


def _watch(
    session: RunContext, task: asyncio.Task[None], seconds: float | None, bounded: bool
) -> Ticket:
    """Start the time limit of a call. If ``seconds`` is ``None``, only the run's limit applies."""
    now = session.clock()
    if bounded and now >= session.end:
        raise Expired(f"not asked: the run's {session.limits.run_timeout:g} s were over")
    return session.deadlines.open(task, now, inf if seconds is None else seconds, bounded)


def _expired(session: RunContext, seconds: float | None, bounded: bool) -> Expired:
    if bounded and session.clock() >= session.end:
        return Expired(f"no answer before the run's {session.limits.run_timeout:g} s were over")
    return Expired(f"no answer within {seconds:g} s")


# -- failures ----------------------------------------------------------------------------------


def tombstone(error: Failure) -> Answer:
    """The answer of a call that failed."""
    return NodeReply(error=str(error)), error, None


def reason_of(failure: Exception, node: str) -> Failure:
    """Why a call of a node failed."""
    if isinstance(failure, FailedBefore):
        return failure.failure
    if isinstance(failure, Expired):
        return Failure(kind="timeout", message=str(failure), node=node)
    return Failure.of(failure, node=node)


def both(first: Failure, second: Failure) -> Failure:
    """Why a node and then its fallback failed."""
    kind = second.kind if second.kind == "unavailable" else first.kind
    message = f"{first.message}; its fallback: {second}"
    return msgspec.structs.replace(first, kind=kind, message=message)
