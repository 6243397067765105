"""Environments in which replies are judged. Only training tasks are used; the labels come from the
solver or from the outcome.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from swarm_ui.environment import Graded
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.critics.judged_replies import judged_team
from swarm_ui.experiment.environments import spec_of
from swarm_ui.node import derive
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.credit.judged import (
    CollectConfig,
    JudgedEpisode,
    Labels,
    Purpose,
    collect,
    collect_outcomes,
)
from swarm_ui.rollout import Job, MakeEnvironment

_GUIDE = _STRAY = 0.1
"""Shares of the steps of training episodes that the solver and a random policy choose."""
_GRADED_AT_ONCE, _PLAYED_AT_ONCE = 32, 8
"""Numbers of concurrent episodes, with and without graded actions."""


class Place(NamedTuple):
    """An opened environment and its episodes."""

    name: str
    make: MakeEnvironment
    labels: Labels
    concurrency: int
    jobs: dict[Purpose, list[Job]]
    """The episodes for training and for validation."""


@asynccontextmanager
async def opened(
    section: EnvironmentSection, episodes: int, validation: int
) -> AsyncIterator[Place]:
    """Open an environment and choose its episodes. Equal sections give equal episodes.

    Args:
        section: the environment; its ``seed`` chooses the episodes.
        episodes, validation: the number of episodes for training and for validation.

    Raises:
        ConfigError: the environment is for tests only, or an episode has a held-out task or, in
            training, a held-out seed.
    """
    spec = spec_of(section.name)
    section = spec.for_training(section)
    async with spec.opened(section) as environment:
        if environment.jobs is not None:
            raise ConfigError(
                f"'{section.name}' replays recorded episodes; a critic learns from replies on "
                "screens that its agents reached themselves"
            )
        async with environment.one() as one:
            name, graded = one.name, isinstance(one, Graded)
        tasks = await spec.task_names(section, environment)
        rng = random.Random(derive(section.seed, "critic", section.name))
        jobs: dict[Purpose, list[Job]] = {
            "train": spec.training_jobs(section, tasks, episodes, rng, "train"),
            "validation": spec.training_jobs(section, tasks, validation, rng, "validation"),
        }
        rule = spec.held_out_rule()
        rule.check(name, jobs["train"], "critic")
        msgspec.structs.replace(rule, seeds=()).check(name, jobs["validation"], "critic")
        most = _GRADED_AT_ONCE if graded else _PLAYED_AT_ONCE
        yield Place(
            section.name,
            environment.make,
            "solver" if graded else "outcome",
            min(most, environment.max_concurrency or most),
            jobs,
        )


async def judged(
    place: Place, purpose: Purpose, jobs: Sequence[Job], model: Any, names: Sequence[str | None]
) -> AsyncIterator[JudgedEpisode]:
    """Play jobs of a place with the agents of a model; ``names`` are their adapters."""
    policy = judged_team(model, purpose, names)
    if place.labels == "outcome":
        found = collect_outcomes(
            place.make, policy, jobs, split=purpose, concurrency=place.concurrency
        )
    else:
        train = purpose == "train"
        config = CollectConfig(
            guide=_GUIDE if train else 0.0,
            stray=_STRAY if train else 0.0,
            concurrency=place.concurrency,
        )
        adversary = ScriptedAdversary()
        found = collect(place.make, policy, jobs, split=purpose, config=config, adversary=adversary)
    async for episode in found:
        yield episode
