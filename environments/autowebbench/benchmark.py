"""AutoWebBench in experiments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal

from swarm_ui.environments.autowebbench.data import SPLITS
from swarm_ui.environments.autowebbench.data import AutoWebBench as Data
from swarm_ui.environments.benchmark import Opened
from swarm_ui.environments.recorded.benchmark import Recorded, scored


class AutoWebBench(Recorded):
    """AutoWebBench: recorded pages, offline."""

    splits: ClassVar[tuple[str, ...]] = SPLITS
    trains_on: ClassVar[str | None] = None

    name: Literal["autowebbench"] = "autowebbench"

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        chosen: Any = split or self.splits[0]
        yield scored(Data(self.data, chosen))
