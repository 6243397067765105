"""An AndroidWorld suite as jobs: upstream's tasks with upstream's seeds, in upstream's order."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from swarm_ui.rollout import Job


def suite(tasks: Iterable[str], *, combinations: int = 1, seed: int = 30) -> list[Job]:
    """Upstream's suite for a seed: the same tasks with the same parameters, in the same order.

    Args:
        tasks: names of the tasks.
        combinations: number of instances of each task, with different parameters.
        seed: seed of the suite.
    """
    return [
        (name, instance_seed(seed, name, k)) for name in sorted(tasks) for k in range(combinations)
    ]


def instance_seed(seed: int, task: str, number: int) -> int:
    """Upstream's seed of an instance of a task."""
    return int(sha256(f"{seed}_{task}_{number}".encode()).hexdigest(), 16) % 2**32
