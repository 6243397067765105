"""MiniWoB++ in experiments: real pages in a real Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.miniwob.environment import UPSTREAM, MiniWobBrowser, MiniWobEnvironment
from swarm_ui.environments.miniwob.splits import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.miniwob.tasks import (
    REFERENCE_TASKS,
    all_html_tasks,
    blind_tasks,
    split_of,
)
from swarm_ui.environments.recorded.scores import MeasureInput, measured
from swarm_ui.environments.web import INSTALL_HINT, find_browser
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.stats import Measure
from swarm_ui.trace.records import Episode


class MiniWob(Benchmark):
    """Real MiniWoB++ pages in a real Chromium."""

    label: ClassVar[str] = "Real web pages in a real browser"
    splits: ClassVar[tuple[str, ...]] = ("reference", "blind", "all")
    trains_on: ClassVar[str | None] = "reference"
    resource: ClassVar[str] = "browser"
    train_seeds: ClassVar[range] = TRAIN_SEEDS
    validation_seeds: ClassVar[range] = VALIDATION_SEEDS
    test_seeds: ClassVar[range] = TEST_SEEDS

    name: Literal["miniwob"] = "miniwob"
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""
    published: bool = False
    """Apply upstream's time limit, and report its reward."""

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        async with MiniWobBrowser(pages=1) as browser:
            make = partial(
                MiniWobEnvironment,
                browser.open_page,
                screenshots=self.screenshots,
                published=self.published,
            )
            yield Opened(make, score=upstream_measures if self.published else None)

    def missing(self) -> str:
        try:
            checked_browser()
        except ConfigError as error:
            return str(error)
        return ""

    def known_tasks(self) -> Sequence[str]:
        return all_html_tasks()

    def split_tasks(self, split: str) -> Sequence[str]:
        if split == "blind":
            return blind_tasks()
        return all_html_tasks() if split == "all" else REFERENCE_TASKS

    def test_split(self) -> str:
        return split_of(self.tasks) if self.tasks else "reference"

    def held_out_tasks(self) -> Sequence[str]:
        return blind_tasks()


def upstream_measures(episodes: Sequence[Episode]) -> tuple[Measure, ...]:
    """Mean of upstream's rewards, and the share of those above 0.

    The episodes were played with the page's clock; those with a fault are left out.
    """
    rewards: dict[str, list[float]] = {}
    for episode in episodes:
        if episode.success is not None:
            name, _, told = episode.steps[-1].note.partition(";")[0].rpartition(" ")
            # The step limit of the rollout ends an episode before the page's clock does.
            reward = float(told) if name == UPSTREAM else -1.0
            rewards.setdefault(episode.task, []).append(reward)
    above = {task: [float(r > 0) for r in found] for task, found in rewards.items()}
    inputs = (
        MeasureInput(name="upstream's reward", key="env_reward", values=rewards),
        MeasureInput(name="upstream's reward above 0", values=above),
    )
    return measured(inputs)


def checked_browser() -> Path:
    """Raise ``ConfigError``, with what is missing, if pages cannot be opened on this machine."""
    try:
        import playwright  # noqa: F401
    except ImportError as error:
        raise MissingExtra("web", "MiniWoB++", "playwright") from error
    all_html_tasks()
    found = find_browser()
    if found is None:
        raise ConfigError(INSTALL_HINT)
    return found
