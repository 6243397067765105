"""AndroidWorld in experiments: on a real emulator, and on the simulated handset."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar, Literal

from swarm_ui.environments.androidworld.environment import suite
from swarm_ui.environments.benchmark import Benchmark, Count, Natural, Opened
from swarm_ui.rollout import Job


class _Devices(Benchmark):
    suite_seed: Natural | None = None
    """Play upstream's suite for this seed, in upstream's order; ``None``: our own episodes."""
    combinations: Count = 1
    """Instances of each task in that suite."""
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        from swarm_ui.environments.androidworld.environment import AndroidWorldProcess, Emulator

        emulator = Emulator() if isinstance(self, AndroidWorld) else None
        if emulator is not None:
            emulator.expect()
        make = partial(
            AndroidWorldProcess,
            emulator or "handset",
            screenshots=self.screenshots,
        )
        opened = Opened(make, max_concurrency=1 if emulator else None)
        seed = self.suite_seed
        if seed is None:
            yield opened
            return
        listed = self.tasks or tuple(await opened.tasks())

        def jobs(tasks: Sequence[str]) -> list[Job]:
            return suite(tasks or listed, combinations=self.combinations, seed=seed)

        yield Opened(make, opened.max_concurrency, jobs)

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
