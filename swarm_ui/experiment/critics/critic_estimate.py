"""The estimated cost of training a critic, measured on a few episodes; nothing is written."""

from __future__ import annotations

import random
import time
from typing import Any

import msgspec

from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.critics.critic_run import CriticRun, threads_kept
from swarm_ui.experiment.critics.judged_places import judged, opened
from swarm_ui.experiment.critics.judged_replies import AGENTS
from swarm_ui.experiment.models import adapter_names, open_model
from swarm_ui.optim.credit.judged import JudgedEpisode, JudgedScreen, balanced

_SAMPLE = 4
"""Episodes that are played in each environment."""
_SECONDS = 30.0
"""Maximum duration of the measured training."""


class PlaceSize(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated cost of collecting replies in an environment."""

    name: str
    labels: str
    """Source of the labels: ``solver`` or ``outcome``."""
    episodes: int
    """Number of episodes, for training and validation together."""
    seconds: float


class CriticSize(msgspec.Struct, frozen=True, kw_only=True):
    """The estimated cost of a critic on this machine."""

    places: tuple[PlaceSize, ...]
    replies: int
    """Replies that one pass trains on, after balancing."""
    replies_per_second: float | None
    """Speed of the training; ``None`` if the sample lacks right or wrong replies."""
    seconds: float | None
    """Duration of the training, unless ``minutes`` ends it earlier."""


async def estimate_critic(work: CriticRun) -> CriticSize:
    """Play a few training episodes, and train on them for half a minute.

    Raises:
        ConfigError, ModelError, EnvironmentFault: as
            :func:`~swarm_ui.experiment.critics.critic_run.make_critic`.
    """
    work.check()
    places: list[PlaceSize] = []
    screens: list[JudgedScreen] = []
    played = 0
    with threads_kept():
        async with open_model(work.agent) as model:
            for section in work.places:
                size, found = await _place_size(work, section, model)
                places.append(size)
                screens += [screen for episode in found for screen in episode.screens]
                played += min(_SAMPLE, work.episodes)
    rng, most = random.Random(work.seed), work.training().most
    kept = sum(len(screen.replies) for screen in balanced(screens, rng, most=most))
    replies = round(kept * work.episodes * len(work.places) / max(1, played))
    speed = _speed(work, screens) if kept else None
    return CriticSize(
        places=tuple(places),
        replies=replies,
        replies_per_second=speed,
        seconds=None if speed is None else replies * work.epochs / speed,
    )


async def _place_size(
    work: CriticRun, section: EnvironmentSection, model: Any
) -> tuple[PlaceSize, list[JudgedEpisode]]:
    """The size of a collection, and the episodes that were played to find it."""
    names = adapter_names(work.agent, AGENTS)
    async with opened(section, work.episodes, work.validation) as place:
        jobs = place.jobs["train"][:_SAMPLE]
        began = time.monotonic()
        found = [e async for e in judged(place, "train", jobs, model, names)]
        seconds = (time.monotonic() - began) / len(jobs)
    count = sum(map(len, place.jobs.values()))
    size = PlaceSize(name=place.name, labels=place.labels, episodes=count, seconds=seconds * count)
    return size, found


def _speed(work: CriticRun, screens: list[JudgedScreen]) -> float:
    """Replies per second in training, with the real model."""
    from swarm_ui.experiment.critics.trained_critic import load_judge
    from swarm_ui.optim.credit.learned import ADAPTER, train_critic

    short = msgspec.structs.replace(work, minutes=_SECONDS / 60, epochs=1.0).training()
    last = train_critic(load_judge(work.model, work.start), ADAPTER, screens, short)
    return last.replies / max(last.seconds, 1e-9)
