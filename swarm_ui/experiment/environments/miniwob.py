"""Episodes of the demo and of studies on real MiniWoB++ pages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from swarm_ui.engine.scheduler import together
from swarm_ui.environments.miniwob import (
    REFERENCE_TASKS,
    MiniWobBrowser,
    MiniWobEnvironment,
    all_html_tasks,
)
from swarm_ui.environments.miniwob.benchmark import MiniWob, checked_browser
from swarm_ui.environments.miniwob.splits import TEST_SEEDS
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.rollout import Job, Policy, rollout_many
from swarm_ui.trace.records import Episode

__all__ = ["LINGER", "PAGES", "SPLIT", "TITLE", "check_tasks", "checked_browser", "play_pages",
           "test_jobs", "training_jobs"]  # fmt: skip
PAGES = 8
LINGER = 0.004
"""Seconds that a forward pass waits for more requests, which arrive over a socket here."""
SPLIT = "web"
TITLE = "real MiniWoB++ pages"


def check_tasks(settings: Settings) -> None:
    """Raise ``ConfigError`` if ``--tasks`` names a page that does not exist."""
    for task in settings.tasks:
        if task not in all_html_tasks():
            raise ConfigError(f"--tasks: MiniWoB++ has no task '{task}'")


def training_jobs(settings: Settings, count: int, rng: random.Random) -> list[Job]:
    """Training episodes; their seeds are not used in tests."""
    names = settings.tasks or REFERENCE_TASKS
    return MiniWob().training_jobs(names, count, rng)


def test_jobs(tasks: Sequence[str], each: int) -> list[Job]:
    """``each`` episodes of every task, the same in every run."""
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
        done: called with the finished episodes of each task.
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

    await together([work(environment) for environment in browser.environments])
    return [played[job] for job in jobs]
