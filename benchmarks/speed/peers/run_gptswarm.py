"""Serves GPTSwarm to benchmarks.speed.engine; runs in a separate environment (environments.py).

Its ``Graph.run`` recurses over the whole graph: with Python's limit of 1000 frames a chain of 1000
ends in a RecursionError, so the limit is raised here. Nodes that lead to no output are not run, so
every sink is an output.
"""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.metadata import version
from typing import Any

os.environ.setdefault("OPENAI_API_KEY", "unused")  # some of its modules ask for one

from serve import CALLS, Graphs, Run, Shape, Work, serve
from swarm.graph.graph import Graph
from swarm.graph.node import Node


class Noop(Node):
    """Answers without waiting."""

    def __init__(self, k: int, seconds: float) -> None:
        super().__init__("a node", f"n{k}", True)
        self.seconds = seconds

    async def _execute(self, input: Any, **kwargs: Any) -> Any:
        CALLS[0] += 1
        return {"output": "."}


class Sleep(Noop):
    """Answers after the node's number of seconds."""

    async def _execute(self, input: Any, **kwargs: Any) -> Any:
        CALLS[0] += 1
        await asyncio.sleep(self.seconds)
        return {"output": "."}


NODES = {"noop": Noop, "suspend": Sleep, "sleep": Sleep}


class Bare(Graph):
    """A graph without the nodes of an agent."""

    def build_graph(self) -> None:
        pass


def gptswarm(shape: Shape, work: Work) -> Run:
    """One graph object for all runs."""
    graph = Bare("bench")
    seconds = work.seconds or [0.0] * shape.size
    nodes = [graph.add_node(NODES[work.kind](k, seconds[k])) for k in range(shape.size)]
    for sender, hearer in shape.edges:
        # What add_successor() does, without its search through the lists.
        nodes[sender].successors.append(nodes[hearer])
        nodes[hearer].predecessors.append(nodes[sender])
    graph.input_nodes = [node for node in nodes if not node.predecessors]
    last = shape.size - 1
    graph.output_nodes = [nodes[k] for k in shape.sinks() if k != last] + [nodes[last]]

    async def run() -> Any:
        return (await graph.run({"task": "t"}))[-1]

    return run


if __name__ == "__main__":
    sys.setrecursionlimit(1_000_000)
    serve(Graphs({"gptswarm": gptswarm}), version=version("gptswarm"))
