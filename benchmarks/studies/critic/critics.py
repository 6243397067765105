"""Trains the critics of the study, and judges test replies with them and with the baselines."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.studies.critic.collecting import Collection
from benchmarks.studies.critic.sizes import ARMS, Sizes
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import ModelSection
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.nodes.models.transformers.choosing_model import ChoosingInProcessModel
from swarm_ui.optim.credit.analysis.judging import (
    JudgingFigures,
    Score,
    judge,
    likelihood,
    majority,
    outcome,
)
from swarm_ui.optim.credit.assigners.learned_critic import (
    ADAPTER,
    LearnedCritic,
    learned_critic,
)
from swarm_ui.optim.credit.learned.critic_files import CARD, CriticCard, save_critic
from swarm_ui.optim.credit.learned.judged import JudgedEpisode, JudgedScreen, read_judged
from swarm_ui.optim.credit.learned.scaling import fit_scaling
from swarm_ui.optim.credit.learned.train_critic import CriticConfig, CriticProgress, train_critic
from swarm_ui.storage.run_directory import write_atomic

UNTRAINED = "untrained"
BASELINES: dict[str, Score] = {
    "majority": majority,
    "likelihood": likelihood,
    "outcome": outcome,
}


class Critics:
    """The cells of a study's folder: one critic of an arm and a seed, and its figures."""

    def __init__(
        self, folder: Path, sizes: Sizes, collection: Collection, display: ProgressDisplay
    ) -> None:
        self._folder, self._sizes, self._display = folder, sizes, display
        self._collection = collection

    def train(self, arm: str, seed: int) -> None:
        """Train a critic, unless its folder exists."""
        folder = self._critic(arm, seed)
        if folder.exists():
            return
        paths = [self._collection.path(f"train-{source}") for source in self.sources(arm)]
        found = [read_judged(path, purpose="train")[1] for path in paths]
        screens = [s for episodes in found for episode in episodes for s in episode.screens]
        model, sizes = self._model(), self._sizes
        config = CriticConfig(
            minutes=math.inf if sizes.minutes is None else sizes.minutes,
            epochs=sizes.epochs,
            learning_rate=sizes.learning_rate,
            tokens_per_batch=sizes.tokens_per_batch,
            seed=seed,
        )
        with self._display.bar(folder.name, 1.0) as bar:

            def told(at: CriticProgress) -> None:
                bar.update(at.share, f"loss {at.loss:.3f}, right {at.accuracy:.0%}")

            last = train_critic(model, ADAPTER, screens, config, report=told)
        card = CriticCard(
            base_model=sizes.model,
            replies=last.replies,
            settings={
                "arm": arm, "sources": list(self.sources(arm)), "seed": seed, "steps": last.step,
                "seconds": round(last.seconds, 1), "learning_rate": sizes.learning_rate,
                "loss": last.loss, "accuracy": last.accuracy,
            },
        )  # fmt: skip
        save_critic(model, ADAPTER, self._scaled(model, card), folder)

    def measure(self, arm: str, seed: int, splits: Sequence[str]) -> None:
        """The figures of a critic on each split. Existing figures are not computed again."""
        name = self._critic(arm, seed).name
        missing = [split for split in splits if not self._figures(name, split).exists()]
        if missing:
            critic = learned_critic(self._model(), self._critic(arm, seed))
            for split in missing:
                self._judge(name, split, _score(critic))

    def baselines(self, splits: Sequence[str]) -> None:
        """The figures of the model without training, and of scores without a model."""
        missing = [s for s in splits if not self._figures(UNTRAINED, s).exists()]
        if missing:
            critic = LearnedCritic(self._model(), adapter=None)
            for split in missing:
                self._judge(UNTRAINED, split, _score(critic))
        for name, score in BASELINES.items():
            for split in splits:
                if not self._figures(name, split).exists():
                    self._judge(name, split, score)

    def sources(self, arm: str) -> Sequence[str]:
        """The sources that a critic is trained on, without those that have no episodes."""
        sizes = self._sizes
        counts = {"phone": sizes.phone, "invented": sizes.invented,
                  "web": sizes.web_each * sizes.pages}  # fmt: skip
        return [source for source in ARMS[arm] if counts[source]]

    def _scaled(self, model: ChoosingInProcessModel[object], card: CriticCard) -> CriticCard:  # type: ignore[type-var]
        """The card with the scaling, and figures, of validation replies of agents."""
        _, episodes = read_judged(self._collection.path("validation"), purpose="validation")
        raw = LearnedCritic(model, card=card)
        score, agents = _score(raw), ("own", "colleague")

        async def ask() -> list[tuple[float, bool]]:
            found: list[tuple[float, bool]] = []
            for episode in episodes:
                for screen in episode.screens:
                    given = await score(episode, screen)
                    pairs = zip(given, screen.replies, strict=True)
                    found += [(value, r.right) for value, r in pairs if r.kind in agents]
            return found

        pairs = asyncio.run(ask())
        scaling = fit_scaling([p for p, _ in pairs], [right for _, right in pairs])
        after = msgspec.structs.replace(card, scaling=scaling)

        async def scaled(episode: JudgedEpisode, screen: JudgedScreen) -> Sequence[float]:
            return [scaling(value) for value in await score(episode, screen)]

        figures = [asyncio.run(judge(episodes, "", s)) for s in (score, scaled)]
        auc = figures[1].auc
        validation: dict[str, float | None] = {
            "replies": figures[1].replies,
            "right": figures[1].right,
            "auc": None if auc is None else auc.mean,
            "error_unscaled": figures[0].error,
            "error": figures[1].error,
        }
        return msgspec.structs.replace(after, validation=validation)

    def _judge(self, name: str, split: str, score: Score) -> None:
        _, episodes = read_judged(self._collection.path(split), purpose="test")
        with self._display.bar(f"{name} on {split}", 1):
            figures: JudgingFigures = asyncio.run(judge(episodes, name, score))
        write_atomic(self._figures(name, split), msgspec.json.encode(figures) + b"\n")

    def _critic(self, arm: str, seed: int) -> Path:
        return self._folder / "critics" / f"{arm}-{seed}"

    def _figures(self, name: str, split: str) -> Path:
        return self._folder / "figures" / f"{name}@{split}.json"

    def _model(self) -> ChoosingInProcessModel[object]:  # type: ignore[type-var]
        model = load_in_process(ModelSection(name=self._sizes.model))
        if not isinstance(model, ChoosingInProcessModel):
            raise ConfigError(
                f"--model: '{self._sizes.model}' is no language model in this process; expected "
                "the folder of a transformers model"
            )
        return model


def cards(folder: Path) -> dict[str, CriticCard]:
    """The cards of all critics in a study's folder."""
    paths = sorted((folder / "critics").glob(f"*/{CARD}"))
    return {p.parent.name: msgspec.json.decode(p.read_bytes(), type=CriticCard) for p in paths}


def _score(critic: LearnedCritic) -> Score:
    async def score(episode: JudgedEpisode, screen: JudgedScreen) -> Sequence[float]:
        return await critic.scores(screen.observation, [r.action for r in screen.replies])

    return score
