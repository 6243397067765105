"""Training episodes in which each start is attempted several times."""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, draw_jobs, tasks
from swarm_ui.observation import Observation
from swarm_ui.rollout import Job


class RepeatedPhone(PhoneEnvironment):
    """A phone on which several seeds of an episode have one start.

    A rollout draws its decisions from the seed of the episode. With the seed alone, two attempts at
    one start would be the same episode.
    """

    def __init__(self, attempts: int) -> None:
        """``attempts``: that many successive seeds have one start."""
        super().__init__()
        self._attempts = attempts

    async def reset(self, *, task: str, seed: int) -> Observation:
        """See :class:`~swarm_ui.environments.phone.PhoneEnvironment`."""
        return await super().reset(task=task, seed=seed // self._attempts)


def repeated(starts: Sequence[Job], attempts: int) -> list[Job]:
    """Several episodes of each start, for :class:`RepeatedPhone`."""
    return [(task, seed * attempts + k) for task, seed in starts for k in range(attempts)]


def training_starts(count: int, rng: random.Random) -> list[Job]:
    """Starts of training templates with training parameters."""
    return draw_jobs(tasks("train"), count, rng.getrandbits(31), seeds=TRAIN_SEEDS)
