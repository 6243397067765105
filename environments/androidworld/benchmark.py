"""AndroidWorld in experiments: on a real emulator, and on the simulated handset."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

from swarm_ui.environments.androidworld.environment import (
    AndroidWorldProcess,
    Device,
    Emulator,
    suite,
)
from swarm_ui.environments.benchmark import Benchmark, Count, Natural, Opened


class _Devices(Benchmark):
    suite_seed: Natural | None = None
    """Play upstream's suite for this seed, in upstream's order; ``None``: our own episodes."""
    combinations: Count = 1
    """Instances of each task in that suite."""
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        device: Device = "handset"
        if isinstance(self, AndroidWorld):
            device = Emulator()
            device.expect()
        make = partial(AndroidWorldProcess, device, screenshots=self.screenshots)
        opened = Opened(make, max_concurrency=None if device == "handset" else 1)
        seed, count = self.suite_seed, self.combinations
        if seed is not None:
            listed = self.tasks or await opened.tasks()
            suite_of = partial(suite, combinations=count, seed=seed)
            opened = replace(opened, jobs=lambda tasks: suite_of(tasks or listed))
        yield opened

    @property
    def fixed_episodes(self) -> bool:
        return self.suite_seed is not None

    def mistakes(self, splits: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        yield from super().mistakes(splits)
        if self.combinations > 1 and self.suite_seed is None:
            yield "combinations", "combinations are those of a suite: give env.suite_seed"


class AndroidWorld(_Devices):
    """AndroidWorld on a real emulator."""

    label: ClassVar[str] = "AndroidWorld on an emulator"
    resource: ClassVar[str] = "emulator"

    name: Literal["androidworld"] = "androidworld"


class Handset(_Devices):
    """AndroidWorld's tasks on the simulated handset."""

    label: ClassVar[str] = "The handset is simulated: its scores are not AndroidWorld scores"
    resource: ClassVar[str] = "handset"

    name: Literal["handset"] = "handset"
