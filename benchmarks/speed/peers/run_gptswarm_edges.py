"""Times GPTSwarm's ``realize`` for benchmarks.speed.edges, in an environment of its own.

A request is a line ``{"nodes", "density", "seconds"}``, the answer a line ``{"cpu": [...]}``: CPU
seconds of each call made within ``seconds``, at least one. The graph is a composite graph of plain
nodes; any ordered pair of them is a potential connection.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from typing import Any

import torch
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


def time_realize(nodes: int, density: float, seconds: float) -> list[float]:
    """CPU seconds of each call."""
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
    return took


def main() -> None:
    """Answer until stdin ends. What GPTSwarm prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    torch.set_num_threads(1)
    print(json.dumps({"version": version("gptswarm")}), file=answers, flush=True)
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"cpu": time_realize(**json.loads(line))}
        except Exception as error:  # told to the one who asked
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
