"""Measures one system in a separate process: one request per line on stdin, one answer per line.

A system is a function of (shape, work), which gives a coroutine function ``run()``. The work
of a node is the same in every system:

    noop     count the call, answer "."
    suspend  the same after one return to the event loop (``asyncio.sleep(0)``)
    sleep    the same after its own number of seconds

Requests, JSON objects with ``do`` and:

    build       {size, edges, work, seconds, systems}
                                            builds, makes one run, checks that every node was called
    time        {system, runs}              CPU and wall seconds per run

Only the standard library: this file is used in every environment.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

CALLS = [0]
"""How many nodes were called; each node adds one."""

Run = Callable[[], Awaitable[Any]]


class Work(NamedTuple):
    """The work of the nodes; see the module."""

    kind: str
    seconds: list[float]
    """For ``sleep``: of each node."""


class Shape(NamedTuple):
    """Nodes ``0 .. size - 1`` and edges from smaller to larger numbers."""

    size: int
    edges: list[tuple[int, int]]

    def heard(self) -> list[list[int]]:
        """Predecessors of each node."""
        heard: list[list[int]] = [[] for _ in range(self.size)]
        for sender, hearer in self.edges:
            heard[hearer].append(sender)
        return heard

    def sinks(self) -> list[int]:
        """Nodes without successors."""
        senders = {sender for sender, _ in self.edges}
        return [k for k in range(self.size) if k not in senders]


class Graphs:
    """Answers requests about the systems of this process: functions that build a graph once for
    many runs. A run returns the answer of the last node."""

    def __init__(self, systems: dict[str, Callable[[Shape, Work], Run]]) -> None:
        self._systems = systems
        self._runs: dict[str, Run] = {}

    async def build(
        self, size: int, edges: list[list[int]], work: str, seconds: list[float], systems: list[str]
    ) -> dict[str, Any]:
        graph = Shape(size, [(a, b) for a, b in edges])
        self._runs.clear()
        gc.collect()
        took = {}
        for name in systems:
            began = time.process_time()
            self._runs[name] = self._systems[name](graph, Work(work, seconds))
            took[name] = time.process_time() - began
            CALLS[0] = 0
            await self._runs[name]()
            if CALLS[0] != graph.size:
                raise RuntimeError(f"{name}: {CALLS[0]} calls in a run of {graph.size} nodes")
        return {"build_s": took}

    async def time(self, system: str, runs: int) -> dict[str, Any]:
        run = self._runs[system]
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(runs):
            await run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return {"cpu": cpu / runs, "wall": wall / runs}


def serve(server: object, **facts: str) -> None:
    """Answer requests until stdin ends. What the systems print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    print(json.dumps(facts), file=answers, flush=True)
    with asyncio.Runner() as loop:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = loop.run(getattr(server, request.pop("do"))(**request))
            except Exception as error:  # told to the one who asked
                answer = {"error": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(answer), file=answers, flush=True)
