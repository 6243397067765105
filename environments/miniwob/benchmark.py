"""MiniWoB++ in experiments: real pages in a real Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.miniwob.environment import MiniWobBrowser, MiniWobEnvironment
from swarm_ui.environments.miniwob.tasks import (
    PRACTICE_TASKS,
    REFERENCE_TASKS,
    TEST_SEEDS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    all_html_tasks,
    blind_tasks,
    split_of,
)
from swarm_ui.environments.web import INSTALL_HINT, find_browser
from swarm_ui.errors import ConfigError


class MiniWob(Benchmark):
    """Real MiniWoB++ pages in a real Chromium."""

    label: ClassVar[str] = "Real web pages in a real browser"
    splits: ClassVar[tuple[str, ...]] = ("reference", "blind", "practice", "all")
    trains_on: ClassVar[str | None] = "reference"
    resource: ClassVar[str] = "browser"
    seeds: ClassVar[Mapping[Any, range]] = {
        "train": TRAIN_SEEDS, "validation": VALIDATION_SEEDS, "test": TEST_SEEDS
    }  # fmt: skip

    name: Literal["miniwob"] = "miniwob"
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        async with MiniWobBrowser(pages=1) as browser:
            make = partial(MiniWobEnvironment, browser.open_page, screenshots=self.screenshots)
            yield Opened(make)

    def missing(self) -> str:
        try:
            all_html_tasks()
            return INSTALL_HINT if find_browser() is None else ""
        except ConfigError as error:
            return str(error)

    def known_tasks(self) -> Sequence[str]:
        return all_html_tasks()

    def split_tasks(self, split: str) -> Sequence[str]:
        fixed = {"reference": REFERENCE_TASKS, "practice": PRACTICE_TASKS}
        return fixed.get(split) or (blind_tasks() if split == "blind" else all_html_tasks())

    def test_split(self) -> str:
        return split_of(self.tasks) if self.tasks else "reference"

    def held_out_tasks(self) -> Sequence[str]:
        return blind_tasks()
