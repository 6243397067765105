"""Mind2Web in experiments."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Literal

from swarm_ui.environments.benchmark import Opened
from swarm_ui.environments.mind2web.data import Mind2Web as Data
from swarm_ui.environments.recorded.benchmark import Recorded, scored


class Mind2Web(Recorded):
    """Mind2Web: recorded pages, offline."""

    splits: ClassVar[tuple[str, ...]] = ("test_task", "test_website", "test_domain", "train")
    trains_on: ClassVar[str | None] = "train"

    name: Literal["mind2web"] = "mind2web"
    screenshots: bool = False
    """A picture in every observation, for models with vision."""

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        chosen: Any = split or self.splits[0]
        yield scored(Data(self.data, chosen, screenshots=self.screenshots))
