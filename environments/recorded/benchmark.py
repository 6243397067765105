"""Recorded episodes in experiments, and recordings of one's own as training data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.recorded import autowebbench, mind2web
from swarm_ui.environments.recorded.demonstrations import Recordings


class Recorded(Benchmark):
    """Recorded episodes, which determine what is played."""

    label: ClassVar[str] = "Recorded pages, offline"

    data: str = ""
    """Your copy of the data."""

    def read(self, split: str) -> Any:
        """The recordings of a split."""
        raise NotImplementedError

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        data = self.read(split or self.test_split())
        yield Opened(
            data.environment,
            jobs=lambda tasks: data.jobs(tasks or None),
            score=lambda episodes: data.score(episodes).measures if self.splits else (),
        )

    def mistakes(self, splits: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        yield from super().mistakes(splits)
        if not self.data:
            yield "data", f"{self.name} needs your copy of the data: env.data=PATH"

    @property
    def fixed_episodes(self) -> bool:
        return True


class Mind2Web(Recorded):
    """Mind2Web: recorded pages, offline."""

    splits: ClassVar[tuple[str, ...]] = ("test_task", "test_website", "test_domain", "train")
    trains_on: ClassVar[str | None] = "train"

    name: Literal["mind2web"] = "mind2web"
    screenshots: bool = False
    """A picture in every observation, for models with vision."""

    def read(self, split: Any) -> mind2web.Mind2Web:
        return mind2web.Mind2Web(self.data, split, screenshots=self.screenshots)


class AutoWebBench(Recorded):
    """AutoWebBench: recorded pages, offline."""

    splits: ClassVar[tuple[str, ...]] = autowebbench.SPLITS
    trains_on: ClassVar[str | None] = None

    name: Literal["autowebbench"] = "autowebbench"

    def read(self, split: Any) -> autowebbench.AutoWebBench:
        return autowebbench.AutoWebBench(self.data, split)


class Demonstrations(Recorded):
    """Episodes that a person played, as a source of training data."""

    label: ClassVar[str] = "Episodes that a person played (swarm-ui play --out)"

    name: Literal["demonstrations"] = "demonstrations"

    def read(self, split: str) -> Any:
        return Recordings(Path(self.data))
