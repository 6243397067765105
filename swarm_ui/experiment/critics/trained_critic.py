"""Trains a critic on judged replies, and scales its scores on replies of validation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import ModelSection
from swarm_ui.experiment.models import kind_of, load_in_process
from swarm_ui.experiment.progress import Bar
from swarm_ui.nodes.models.pretrained.catalogue import adapter_folder
from swarm_ui.nodes.models.transformers.choosing_model import ChoosingInProcessModel
from swarm_ui.optim.credit.judged import (
    JudgedEpisode,
    JudgedScreen,
    Purpose,
    read_judged,
)
from swarm_ui.optim.credit.judging import JudgingFigures, Score, judge
from swarm_ui.optim.credit.learned import (
    ADAPTER,
    CriticCard,
    CriticConfig,
    CriticProgress,
    LearnedCritic,
    fit_scaling,
    train_critic,
)

if TYPE_CHECKING:
    JudgingModel: TypeAlias = ChoosingInProcessModel[object]  # type: ignore[type-var]

_AGENTS = ("own", "colleague")


class ScaledCritic(NamedTuple):
    """A trained critic in its model."""

    card: CriticCard
    """The critic's metadata, with the scaling and the validation figures."""
    score: Score
    """The scaled scores."""


def load_judge(section: ModelSection, start: str = "") -> JudgingModel:
    """The language model that a critic is trained on.

    Args:
        section: the model.
        start: the adapter that the training starts from: its folder, or its name in this package.
            Empty: the training begins with a new one.

    Raises:
        ConfigError: there is no such model or adapter, they do not fit each other, or the model
            does not run in this process.
    """
    model = load_in_process(section) if kind_of(section) == "local" else None
    if not isinstance(model, ChoosingInProcessModel):
        raise ConfigError(
            f"'{section.name}' is not a language model in this process; expected smollm2, the "
            "folder of a transformers model, or org/name on the Hugging Face Hub"
        )
    if start:
        model.load_adapter(adapter_folder(start), ADAPTER)
    return model


def read_screens(paths: Sequence[Path]) -> list[JudgedScreen]:
    """All screens of files that were collected for training."""
    return [screen for episode in _read(paths, "train") for screen in episode.screens]


def read_validation(paths: Sequence[Path]) -> list[JudgedEpisode]:
    """All episodes of files that were collected for validation."""
    return _read(paths, "validation")


def trained_critic(
    model: JudgingModel,
    screens: Sequence[JudgedScreen],
    validation: Sequence[JudgedEpisode],
    config: CriticConfig,
    card: CriticCard,
    bar: Bar,
) -> ScaledCritic:
    """Train the adapter of a critic in a model, and scale its scores.

    Args:
        model: gets the adapter.
        screens: the training data.
        validation: episodes with one kind of labels, on which the scores are scaled.
        config: settings of the training.
        card: the metadata of the critic; the settings of the training are added to it.
        bar: shows the share that is done.

    Raises:
        ConfigError: there are no right and wrong replies to learn from, or none to scale on.
        LearningError: a loss was not a number.
    """

    def told(at: CriticProgress) -> None:
        left = at.seconds * (1.0 - at.share) / max(at.share, 1e-9)
        bar.update(at.share, f"loss {at.loss:.3f}, right {at.accuracy:.0%}", left=left)

    last = train_critic(model, ADAPTER, screens, config, report=told)
    training = {
        "seed": config.seed, "steps": last.step, "seconds": round(last.seconds, 1),
        "learning_rate": config.learning_rate, "loss": last.loss, "accuracy": last.accuracy,
    }  # fmt: skip
    card = msgspec.structs.replace(
        card,
        prompt_format=config.prompt_format,
        replies=last.replies,
        settings={**card.settings, **training},
    )
    return asyncio.run(_scaled(model, card, validation))


def critic_score(critic: LearnedCritic) -> Score:
    """The scores of a critic, in the form that :func:`judge` takes."""

    async def score(episode: JudgedEpisode, screen: JudgedScreen) -> Sequence[float]:
        return await critic.scores(screen.observation, [r.action for r in screen.replies])

    return score


async def _scaled(
    model: JudgingModel, card: CriticCard, episodes: Sequence[JudgedEpisode]
) -> ScaledCritic:
    """The critic with a scaling that fits the replies of agents in these episodes."""
    raw = critic_score(LearnedCritic(model, card=card))
    before = await judge(episodes, "", raw)
    pairs: list[tuple[float, bool]] = []
    for episode in episodes:
        for screen in episode.screens:
            found = zip(await raw(episode, screen), screen.replies, strict=True)
            pairs += [(value, reply.right) for value, reply in found if reply.kind in _AGENTS]
    scaling = fit_scaling([p for p, _ in pairs], [right for _, right in pairs])

    async def scaled(episode: JudgedEpisode, screen: JudgedScreen) -> Sequence[float]:
        return [scaling(value) for value in await raw(episode, screen)]

    after: JudgingFigures = await judge(episodes, "", scaled)
    figures: dict[str, float | None] = {
        "replies": after.replies,
        "right": after.right,
        "auc": None if after.auc is None else after.auc.mean,
        "error_unscaled": before.error,
        "error": after.error,
    }
    card = msgspec.structs.replace(card, scaling=scaling, validation=figures)
    return ScaledCritic(card, scaled)


def _read(paths: Sequence[Path], purpose: Purpose) -> list[JudgedEpisode]:
    return [episode for path in paths for episode in read_judged(path, purpose=purpose)[1]]
