"""Trains the critics of the study, and judges test replies with them and with the baselines."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.studies.critic.collecting import Collection
from benchmarks.studies.critic.sizes import ARMS, Sizes
from benchmarks.studies.struct_files import read_struct, write_struct
from swarm_ui.adapter_metadata import CRITIC_FILE
from swarm_ui.experiment.config import ModelSection
from swarm_ui.experiment.critics.trained_critic import (
    critic_score,
    load_judge,
    read_screens,
    read_validation,
    trained_critic,
)
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.model import Decision, Request
from swarm_ui.optim.adversary import with_label
from swarm_ui.optim.credit.judged import JudgedEpisode, JudgedScreen, read_judged
from swarm_ui.optim.credit.judging import (
    JudgingFigures,
    Score,
    judge,
    likelihood,
    majority,
    outcome,
)
from swarm_ui.optim.credit.learned import (
    ADAPTER,
    CriticCard,
    CriticConfig,
    LearnedCritic,
    learned_critic,
    save_critic,
)

if TYPE_CHECKING:
    from swarm_ui.experiment.critics.trained_critic import JudgingModel

UNTRAINED, START = "untrained", "start"
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
        sources = self.sources(arm)
        screens = read_screens([self._collection.path(f"train-{name}") for name in sources])
        validation = read_validation([self._collection.path("validation")])
        sizes = self._sizes
        model = self._model(sizes.start)
        config = CriticConfig(
            minutes=math.inf if sizes.minutes is None else sizes.minutes,
            epochs=sizes.epochs,
            learning_rate=sizes.learning_rate,
            tokens_per_batch=sizes.tokens_per_batch,
            seed=seed,
        )
        card = CriticCard(base_model=sizes.model, settings={"arm": arm, "sources": list(sources)})
        with self._display.bar(folder.name, 1.0) as bar:
            made = trained_critic(model, screens, validation, config, card, bar)
        save_critic(model, ADAPTER, made.card, folder)

    def measure(self, arm: str, seed: int, splits: Sequence[str]) -> None:
        """The figures of a critic on each split. Existing figures are not computed again."""
        name = self._critic(arm, seed).name
        missing = [split for split in splits if not self._figures(name, split).exists()]
        if missing:
            critic = learned_critic(self._model(), self._critic(arm, seed))
            for split in missing:
                self._judge(name, split, critic_score(critic))

    def baselines(self, splits: Sequence[str]) -> None:
        """The figures of the baselines: the model without training, the probability of the reply
        under the adapter from which training starts, and scores without a model."""
        missing = [s for s in splits if not self._figures(UNTRAINED, s).exists()]
        if missing:
            critic = LearnedCritic(self._model(), adapter=None)
            for split in missing:
                self._judge(UNTRAINED, split, critic_score(critic))
        missing = [s for s in splits if not self._figures(START, s).exists()]
        if missing and self._sizes.start:
            score = _probability(self._model(self._sizes.start))
            for split in missing:
                self._judge(START, split, score)
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

    def _judge(self, name: str, split: str, score: Score) -> None:
        _, episodes = read_judged(self._collection.path(split), purpose="test")
        with self._display.bar(f"{name} on {split}", 1):
            figures: JudgingFigures = asyncio.run(judge(episodes, name, score))
        write_struct(self._figures(name, split), figures)

    def _critic(self, arm: str, seed: int) -> Path:
        return self._folder / "critics" / f"{arm}-{seed}"

    def _figures(self, name: str, split: str) -> Path:
        return self._folder / "figures" / f"{name}@{split}.json"

    def _model(self, start: str = "") -> JudgingModel:
        return load_judge(ModelSection(name=self._sizes.model), start)


def _probability(model: JudgingModel) -> Score:
    """The probability of each reply under the adapter in a model, as an agent would write it."""

    async def score(episode: JudgedEpisode, screen: JudgedScreen) -> list[float]:
        request = Request(decision=Decision(observation=screen.observation), adapter=ADAPTER)
        actions = [with_label(reply.action, screen.observation) for reply in screen.replies]
        found = await model.score([request] * len(actions), [each.json() for each in actions])
        return [math.exp(value) for value in found]

    return score


def cards(folder: Path) -> dict[str, CriticCard]:
    """The cards of all critics in a study's folder."""
    paths = sorted((folder / "critics").glob(f"*/{CRITIC_FILE}"))
    return {p.parent.name: read_struct(p, CriticCard) for p in paths}
