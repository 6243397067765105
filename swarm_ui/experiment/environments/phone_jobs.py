"""Episodes of environments whose seeds are split as those of the phone."""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments.spec import DEFAULT_EPISODES, Seeds
from swarm_ui.rollout import Job


def seeds_of(split: str) -> range:
    """The seeds of a split. All splits except ``train`` and ``validation`` have test seeds."""
    from swarm_ui.environments import phone

    own = {"validation": phone.VALIDATION_SEEDS, "train": phone.TRAIN_SEEDS}
    return own.get(split, phone.TEST_SEEDS)


def count_of(section: EnvironmentSection) -> int:
    """The number of test episodes: one for each named task, if no number is given."""
    return section.episodes or (len(section.tasks) or DEFAULT_EPISODES)


def test_jobs(section: EnvironmentSection, tasks: Sequence[str]) -> list[Job]:
    """The test episodes of ``tasks``, or of the tasks that the section names."""
    from swarm_ui.environments.phone import draw_jobs

    names = section.tasks or tuple(tasks)
    return draw_jobs(names, count_of(section), section.seed, seeds=seeds_of(section.split))


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


def training_jobs(
    section: EnvironmentSection, names: Sequence[str], count: int, rng: random.Random, seeds: Seeds
) -> list[Job]:
    """Episodes with seeds of training or of validation."""
    from swarm_ui.environments.phone import draw_jobs

    return draw_jobs(tuple(names), count, rng.getrandbits(32), seeds=seeds_of(seeds))
