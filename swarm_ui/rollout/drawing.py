"""Draws episodes of tasks with seeds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.rollout.pool import Job


def spread_jobs(tasks: Sequence[str], n: int, seed: int, seeds: range) -> list[Job]:
    """``n`` episodes in random order, evenly spread over the tasks.

    Args:
        tasks: at least one, if ``n`` is not 0.
        n: number of episodes.
        seed: seed of the choice; equal arguments give equal lists.
        seeds: range of the episodes' seeds.
    """
    rng = random.Random(seed)
    chosen: list[Job] = []
    while len(chosen) < n:
        cycle = rng.sample(tasks, len(tasks))
        chosen.extend((task, rng.choice(seeds)) for task in cycle[: n - len(chosen)])
    return chosen
