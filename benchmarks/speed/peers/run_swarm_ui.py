"""Serves swarm_ui, and ``asyncio.gather`` of as many coroutines, to benchmarks.speed.engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from serve import CALLS, Graphs, Run, Shape, Work, serve

from swarm_ui import CollabGraph, Limits, Message, NodeContext, NodeReply

LIMITS = Limits(timeout=60)


class Noop:
    """Answers without waiting."""

    def __init__(self, k: int, seconds: float) -> None:
        self.id = f"n{k}"
        self.seconds = seconds

    async def __call__(self, inbox: list[Message], context: NodeContext) -> NodeReply:
        CALLS[0] += 1
        return NodeReply(content=".")


class Sleep(Noop):
    """Answers after the node's number of seconds."""

    async def __call__(self, inbox: list[Message], context: NodeContext) -> NodeReply:
        CALLS[0] += 1
        await asyncio.sleep(self.seconds)
        return NodeReply(content=".")


def swarm_ui(shape: Shape, work: Work) -> Run:
    """The graph with all features: timeouts of nodes, messages, a trace, errors as tombstones."""
    node: Callable[[int, float], Noop] = Noop if work.kind == "noop" else Sleep
    seconds = work.seconds or [0.0] * shape.size
    graph = CollabGraph(
        [node(k, seconds[k]) for k in range(shape.size)],
        [(f"n{a}", f"n{b}") for a, b in shape.edges],
        output=f"n{shape.size - 1}",
    )

    async def run() -> Any:
        trace = await graph.run("t", limits=LIMITS)
        assert trace.calls[-1].error is None  # the record is built on demand
        return trace.messages[-1].content

    return run


async def _noop() -> str:
    CALLS[0] += 1
    return "."


async def _sleep(seconds: float) -> str:
    CALLS[0] += 1
    await asyncio.sleep(seconds)
    return "."


def gather(shape: Shape, work: Work) -> Run:
    """The cost of tasks alone: the same number of concurrent coroutines, without messages.

    Nodes that sleep are gathered level by level. If all nodes take the same time, this is the lower
    bound of the wall time of a graph on this machine.
    """
    seconds = work.seconds or [0.0] * shape.size
    levels: dict[int, list[float]] = {}
    depth = [0] * shape.size
    for k, heard in enumerate(shape.heard() if work.kind == "sleep" else [[]] * shape.size):
        depth[k] = 1 + max([depth[j] for j in heard], default=-1)
        levels.setdefault(depth[k], []).append(seconds[k])

    async def run() -> Any:
        if work.kind == "noop":
            return (await asyncio.gather(*[_noop() for _ in seconds]))[-1]
        for _, together in sorted(levels.items()):
            answers = await asyncio.gather(*[_sleep(s) for s in together])
        return answers[-1]

    return run


if __name__ == "__main__":
    serve(Graphs({"swarm_ui": swarm_ui, "gather": gather}))
