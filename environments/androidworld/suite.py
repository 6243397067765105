"""An AndroidWorld suite as jobs: upstream's tasks with upstream's seeds, in upstream's order."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from swarm_ui.errors import ConfigError
from swarm_ui.rollout import Job


def suite(
    tasks: Iterable[str], *, combinations: int = 1, seed: int = 30, identical: bool = False
) -> list[Job]:
    """Upstream's suite for a seed: the same tasks with the same parameters, in the same order.

    Args:
        tasks: names of the tasks.
        combinations: number of instances of each task, with different parameters.
        seed: seed of the suite.
        identical: give all instances of a task the parameters of its first instance.
    """
    if combinations < 1:
        raise ConfigError(f"suite: 'combinations' must be at least 1, got {combinations}")
    names = sorted(tasks)
    return [
        (name, instance_seed(seed, name, 0 if identical else k))
        for name in names
        for k in range(combinations)
    ]


def instance_seed(seed: int, task: str, number: int) -> int:
    """Upstream's seed of an instance of a task."""
    return int(sha256(f"{seed}_{task}_{number}".encode()).hexdigest(), 16) % 2**32
