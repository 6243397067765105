"""Web sites of your own, in a browser that reaches only their hosts, and BrowserGym's tasks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.environments.web import (
    INSTALL_HINT,
    WebBrowser,
    WebEnvironment,
    WebView,
    find_browser,
    webarena_tasks,
)
from swarm_ui.environments.web.browsergym import NO_PYTHON, PYTHON, BrowserGymProcess
from swarm_ui.errors import ConfigError


class Web(Benchmark):
    """Web sites in a real browser."""

    label: ClassVar[str] = "Web sites in a real browser"
    resource: ClassVar[str] = "browser"

    name: Literal["web"] = "web"
    data: str = ""
    """A file of tasks in WebArena's form."""
    screenshots: bool = False
    """A PNG in every observation, for models with vision."""

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        tasks, unsupported = webarena_tasks(Path(self.data))
        if not tasks:
            raise ConfigError(f"{self.data}: no task can be judged: {dict(unsupported)}")
        view = WebView(screenshots=self.screenshots)
        async with WebBrowser([task.url for task in tasks.values()]) as browser:
            yield Opened(lambda: WebEnvironment(tasks=tasks, browser=browser, view=view))

    def missing(self) -> str:
        return INSTALL_HINT if find_browser() is None else ""

    def mistakes(self, splits: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
        yield from super().mistakes(splits)
        if not self.data:
            yield "data", "web needs a file of tasks: env.data=TASKS.json"


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
