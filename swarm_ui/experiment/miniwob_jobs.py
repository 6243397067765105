"""Real MiniWoB++ pages in a real Chromium."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path

from swarm_ui.environments.miniwob import (
    REFERENCE_TASKS,
    MiniWobBrowser,
    MiniWobEnvironment,
    all_html_tasks,
    find_browser,
)
from swarm_ui.environments.miniwob.browser import INSTALL_HINT
from swarm_ui.environments.miniwob.splits import TEST_SEEDS, TRAIN_SEEDS
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.rollout.episodes import Job, rollout_many
from swarm_ui.rollout.policy import Policy
from swarm_ui.trace.records import Episode

PAGES = 8
LINGER = 0.004
"""Seconds a forward waits for more requests, which come over a socket here."""
SPLIT = "web"
TITLE = "real MiniWoB++ pages"


def browser_or_reason() -> tuple[Path | None, str]:
    """The Chromium to use, or why there is none."""
    try:
        return checked_browser(), ""
    except ConfigError as error:
        return None, str(error)


def checked_browser() -> Path:
    """Raises ``ConfigError`` if pages cannot be shown here, and says what is missing."""
    try:
        import websockets  # noqa: F401
    except ImportError as error:
        raise MissingExtra("web", "MiniWoB++", "websockets") from error
    all_html_tasks()
    found = find_browser()
    if found is None:
        raise ConfigError(INSTALL_HINT)
    return found


def check_tasks(settings: Settings) -> None:
    """Raises ``ConfigError`` if ``--tasks`` names a page that does not exist."""
    for task in settings.tasks:
        if task not in all_html_tasks():
            raise ConfigError(f"--tasks: MiniWoB++ has no task '{task}'")


def training_jobs(settings: Settings, count: int, rng: random.Random) -> list[Job]:
    names = settings.tasks or REFERENCE_TASKS
    return [(rng.choice(names), rng.choice(TRAIN_SEEDS)) for _ in range(count)]


def test_jobs(tasks: Sequence[str], each: int) -> list[Job]:
    """``each`` episodes of every task; always the same."""
    return [
        (task, random.Random(derive(1, "web", task, k)).choice(TEST_SEEDS))
        for task in tasks
        for k in range(each)
    ]


async def play_pages(
    browser: MiniWobBrowser,
    policy: Policy,
    jobs: Sequence[Job],
    done: Callable[[str, Sequence[Episode]], None],
) -> list[Episode]:
    """Play jobs, each task on one page, so that few pages are loaded; in the order of ``jobs``.

    Args:
        done: given each task's episodes when they are over.
    """
    waiting = list(dict.fromkeys(task for task, _ in jobs))
    played: dict[Job, Episode] = {}

    async def work(environment: MiniWobEnvironment) -> None:
        while waiting:
            task = waiting.pop(0)
            mine = [job for job in jobs if job[0] == task]
            episodes = await rollout_many(lambda: environment, policy, mine, concurrency=1)
            played.update(zip(mine, episodes, strict=True))
            done(task, episodes)

    async with asyncio.TaskGroup() as group:
        for environment in browser.environments:
            group.create_task(work(environment))
    return [played[job] for job in jobs]
