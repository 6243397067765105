"""BrowserGym's tasks, as an experiment names them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.web.browsergym import NO_PYTHON, PYTHON, BrowserGymProcess


class BrowserGym(Benchmark):
    """A benchmark of BrowserGym, in a Python of its own."""

    label: ClassVar[str] = "Goals, rewards and ends of episodes are BrowserGym's"
    resource: ClassVar[str] = "browser"

    name: Literal["browsergym"] = "browsergym"
    benchmark: str = "miniwob"
    """The part of its task names before the dot, such as ``webarena``."""
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        yield Opened(partial(BrowserGymProcess, self.benchmark, screenshots=self.screenshots))

    def missing(self) -> str:
        return "" if os.environ.get(PYTHON) else NO_PYTHON.format(benchmark=self.benchmark)
