"""Runs a graph: every call starts when its own inputs are there.

There is no barrier between nodes, levels or rounds: a slow branch holds only those who hear it.
A run keeps all its state in one object, so one graph serves any number of concurrent runs.
What a trace says does not depend on the order in which answers arrive, timings aside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply, derive
from swarm_ui.observation import Observation
from swarm_ui.run import Limits, Run
from swarm_ui.trace import Trace

if TYPE_CHECKING:
    from swarm_ui.graph import CollabGraph

__all__ = ["Limits", "execute", "nested", "run_blocking"]

T = TypeVar("T")


async def execute(
    graph: CollabGraph,
    observation: Observation,
    *,
    seed: int = 0,
    run: str = "",
    edge_logprob: float | None = None,
    limits: Limits | None = None,
    given: Trace | None = None,
) -> Trace:
    """Run a graph once on a screen.

    Args:
        graph: who talks to whom.
        observation: the screen.
        seed: of every random choice in the run; equal seeds and answers give equal traces.
        run: name of the run, for the trace and for errors.
        edge_logprob: log-probability (nats) of the graph's edges, if they were drawn.
        limits: time, concurrency, failure policy.
        given: a trace whose messages are taken as said, their calls not made again. Only sound
            for calls whose inputs are given too.

    Raises:
        NodeError: a node failed and the policy is ``abort``.
        ConfigError, BudgetExceeded: whatever the policy is.
    """
    current = Run(graph, observation, seed, run, limits or Limits())
    if given is not None:
        current.take(given)
    await current.finish()
    return current.trace(edge_logprob)


async def nested(graph: CollabGraph, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
    """Run a graph as a node of another: its open nodes hear the inbox, its output answers.

    The names inside get the names around them in front (``"team/agent_0"``, message ids
    ``"team:1/agent_0:0"``), so that one trace holds every call.
    """
    inner = Run(
        graph,
        context.observation,
        derive(context.run_seed, context.node, context.round),
        context.run,
        context.limits,
        around=inbox,
        path=context.node + "/",
        prefix=context.message_id + "/",
    )
    await inner.finish()
    answer = inner.answer()
    return NodeReply(
        content=answer.content,
        action=answer.action,
        error=answer.error,
        logprob=answer.logprob,
        ballot=inner.ballot,
        inner=tuple(inner.spoken()),
    )


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code.

    Inside a running event loop (a notebook) it runs in a thread with a loop of its own.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
