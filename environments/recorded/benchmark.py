"""Recorded episodes in experiments, and recordings of one's own as training data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.recorded.android_records import read_android_records
from swarm_ui.environments.recorded.demonstrations import read_demonstrations


class Recorded(Benchmark):
    """Recorded episodes, which determine what is played."""

    label: ClassVar[str] = "Recorded pages, offline"

    data: str = ""
    """Your copy of the data."""

    def mistakes(self, splits: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        yield from super().mistakes(splits)
        if not self.data:
            yield "data", f"{self.name} needs your copy of the data: env.data=PATH"

    @property
    def fixed_episodes(self) -> bool:
        return True


def scored(data: Any) -> Opened:
    """An opened data set with measures of its own."""
    return Opened(
        data.environment,
        jobs=lambda tasks: data.jobs(tasks or None),
        score=lambda episodes: tuple(data.score(episodes).measures),
    )


class Demonstrations(Recorded):
    """Episodes that a person played, as a source of training data."""

    label: ClassVar[str] = "Episodes that a person played (swarm-ui play --out)"

    name: Literal["demonstrations"] = "demonstrations"

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        recordings = read_demonstrations(Path(self.data))
        yield Opened(recordings.environment, jobs=lambda tasks: recordings.jobs(tasks or None))


class AndroidRecords(Recorded):
    """Demonstrations on Android devices, as a source of training data."""

    label: ClassVar[str] = "Demonstrations on Android devices, in AndroidControl's style"

    name: Literal["android-records"] = "android-records"

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        recordings = read_android_records(Path(self.data))
        yield Opened(recordings.environment, jobs=lambda tasks: recordings.jobs(tasks or None))
