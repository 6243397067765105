"""Times GPTSwarm's ``realize`` for benchmarks.speed.edges, in an environment of its own.

The graph is a composite graph of plain nodes; any ordered pair of them is a potential connection.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import torch
from serve import serve
from swarm.graph.composite_graph import CompositeGraph
from swarm.graph.node import Node
from swarm.optimizer.edge_optimizer.parameterization import EdgeWiseDistribution


class Plain(Node):
    """A plain node, which is never run."""

    def __init__(self, k: int) -> None:
        super().__init__("a node", f"n{k}", True)
        self.id = f"n{k:03}"

    async def _execute(self, input: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class Edges:
    """Answers ``{"do": "realize", "nodes", "density", "seconds"}`` with ``{"cpu": [...]}``."""

    async def realize(self, nodes: int, density: float, seconds: float) -> dict[str, list[float]]:
        """CPU seconds of each call made within ``seconds``, at least one."""
        graph = CompositeGraph(Plain(0), "bench")
        for k in range(1, nodes):
            graph.add_node(Plain(k))
        names = list(graph.nodes)
        pairs = [(a, b) for a in names for b in names if a != b]
        distribution = EdgeWiseDistribution(pairs, density)
        took: list[float] = []
        end = time.process_time() + seconds
        while not took or time.process_time() < end:
            began = time.process_time()
            distribution.realize(graph)
            took.append(time.process_time() - began)
        return {"cpu": took}


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(Edges(), version=version("gptswarm"))
