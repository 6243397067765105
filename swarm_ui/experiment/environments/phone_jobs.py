"""Training episodes on the phone and on invented devices."""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.rollout import Job


def mixed_training_jobs(
    known: Sequence[str], invented: Sequence[str], count: int, rng: random.Random
) -> list[Job]:
    """Training episodes of known tasks and, for half of them, of tasks on invented devices. If
    there are no invented tasks, all episodes are of known tasks."""
    from swarm_ui.environments.phone import TRAIN_SEEDS, draw_jobs

    own = count // 2 if invented else 0
    drawn = draw_jobs(tuple(known), count - own, rng.getrandbits(32), seeds=TRAIN_SEEDS)
    if own:
        drawn += draw_jobs(tuple(invented), own, rng.getrandbits(32), seeds=TRAIN_SEEDS)
        rng.shuffle(drawn)
    return drawn
