"""Draws episodes of tasks with seeds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.errors import ConfigError
from swarm_ui.rollout.pool import Job


def spread_jobs(tasks: Sequence[str], n: int, seed: int, seeds: range) -> list[Job]:
    """``n`` episodes in random order, evenly spread over the tasks.

    Args:
        n: number of episodes.
        seed: seed of the choice; equal arguments give equal lists.
        seeds: range of the episodes' seeds.

    Raises:
        ConfigError: there is no task or no seed.
    """
    if n > 0 and not (tasks and seeds):
        raise ConfigError(
            f"cannot draw {n} episodes from {len(tasks)} tasks and {len(seeds)} seeds; give at "
            "least one of each"
        )
    rng = random.Random(seed)
    chosen: list[Job] = []
    while len(chosen) < n:
        cycle = rng.sample(tasks, len(tasks))
        chosen.extend((task, rng.choice(seeds)) for task in cycle[: n - len(chosen)])
    return chosen
