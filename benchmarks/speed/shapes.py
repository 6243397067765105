"""The graphs of :mod:`benchmarks.speed.engine`: the same for every system."""

from __future__ import annotations

import random

from benchmarks.speed.peers.serve import Shape


def chain(n: int) -> Shape:
    """Each node receives from the one before."""
    return Shape(n, [(k, k + 1) for k in range(n - 1)])


def wide(n: int) -> Shape:
    """``n`` nodes without predecessors, and a sink that receives from all of them."""
    return Shape(n + 1, [(k, n) for k in range(n)])


def layered(n: int, width: int = 10) -> Shape:
    """Layers of ten. Each node receives from the whole layer before, a sink from the last layer."""
    edges = [
        (sender, start + place)
        for start in range(width, n, width)
        for place in range(min(width, n - start))
        for sender in range(start - width, start)
    ]
    last = range(n - (n % width or width), n)
    return Shape(n + 1, edges + [(k, n) for k in last])


def random_dag(n: int, predecessors: int = 3, seed: int = 0) -> Shape:
    """Node ``k`` receives from ``min(k, 3)`` nodes, drawn uniformly from those before it."""
    rng = random.Random(seed)
    return Shape(
        n, [(j, k) for k in range(1, n) for j in sorted(rng.sample(range(k), min(k, predecessors)))]
    )


SHAPES = {"chain": chain, "wide": wide, "layered": layered, "random": random_dag}


def critical_path(graph: Shape, seconds: list[float]) -> float:
    """The minimal time of a run in which node ``k`` takes ``seconds[k]``."""
    ready = [0.0] * graph.size
    for sender, hearer in sorted(graph.edges):  # the senders of a node come before it
        ready[hearer] = max(ready[hearer], ready[sender] + seconds[sender])
    return max(begin + took for begin, took in zip(ready, seconds, strict=True))


def right_answer(graph: Shape, task: int) -> int:
    """The answer of a run with ``sum`` work; see peers/serve.py."""
    said: list[int] = []
    for heard in graph.heard():
        said.append(1 + sum(said[j] for j in heard) if heard else task)
    return said[-1]
