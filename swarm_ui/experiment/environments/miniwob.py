"""Real MiniWoB++ pages in a real Chromium."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_ui.engine.scheduler import together
from swarm_ui.environments.miniwob import (
    REFERENCE_TASKS,
    MiniWobBrowser,
    MiniWobEnvironment,
    all_html_tasks,
    blind_tasks,
)
from swarm_ui.environments.miniwob.environment import UPSTREAM
from swarm_ui.environments.miniwob.splits import TEST_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.miniwob.tasks import split_of
from swarm_ui.environments.recorded.scores import (
    RESAMPLES,
    MeasureInput,
    measured,
)
from swarm_ui.environments.web import INSTALL_HINT, find_browser
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments.spec import (
    EnvironmentSpec,
    OpenEnvironment,
    Opening,
    random_jobs,
)
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.rollout import Job, Policy, rollout_many
from swarm_ui.stats import Measure
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut

PAGES = 8
LINGER = 0.004
"""Seconds that a forward pass waits for more requests, which arrive over a socket here."""
SPLIT = "web"
TITLE = "real MiniWoB++ pages"


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    async with MiniWobBrowser(pages=1) as browser:
        open_page, published = browser.open_page, section.published
        yield OpenEnvironment(
            lambda: MiniWobEnvironment(
                open_page, screenshots=section.screenshots, published=published
            ),
            score=upstream_measures if published else None,
        )


def upstream_measures(episodes: Sequence[Episode]) -> tuple[Measure, ...]:
    """Mean of upstream's rewards, and the share of those above 0.

    The episodes were played with the page's clock; those with a fault are left out.
    """
    rewards: dict[str, list[float]] = {}
    for episode in episodes:
        if episode.success is not None:
            name, _, told = episode.steps[-1].note.partition(";")[0].rpartition(" ")
            # The step limit of the rollout ends an episode before the page's clock does.
            reward = float(told) if name == UPSTREAM else -1.0
            rewards.setdefault(episode.task, []).append(reward)
    above = {task: [float(r > 0) for r in found] for task, found in rewards.items()}
    inputs = (
        MeasureInput(name="upstream's reward", key="env_reward", values=rewards),
        MeasureInput(name="upstream's reward above 0", values=above),
    )
    return measured(inputs, seed=0, resamples=RESAMPLES)


def _tasks(section: EnvironmentSection) -> Sequence[str]:
    if section.split == "blind":
        return blind_tasks()
    return all_html_tasks() if section.split == "all" else REFERENCE_TASKS


def _findings(section: EnvironmentSection) -> Iterator[Finding]:
    try:
        checked_browser()
    except ConfigError as error:
        yield ("environment", "name"), str(error)


def _held_out() -> HeldOut:
    """The blind tasks, and the seeds of validation and tests."""
    from swarm_ui.optim.stage1 import HeldOut

    return HeldOut.of(tasks=blind_tasks(), seeds=[VALIDATION_SEEDS, TEST_SEEDS])


SPEC = EnvironmentSpec(
    name="miniwob",
    label="Real web pages in a real browser",
    open=_open,
    splits=("reference", "blind", "all"),
    trains_on="reference",
    reads=("published", "screenshots"),
    tasks=_tasks,
    split_of=split_of,
    resource="browser",
    known_tasks=all_html_tasks,
    findings=_findings,
    held_out=_held_out,
)


def checked_browser() -> Path:
    """Raise ``ConfigError``, with what is missing, if pages cannot be opened on this machine."""
    try:
        import playwright  # noqa: F401
    except ImportError as error:
        raise MissingExtra("web", "MiniWoB++", "playwright") from error
    all_html_tasks()
    found = find_browser()
    if found is None:
        raise ConfigError(INSTALL_HINT)
    return found


def check_tasks(settings: Settings) -> None:
    """Raise ``ConfigError`` if ``--tasks`` names a page that does not exist."""
    for task in settings.tasks:
        if task not in all_html_tasks():
            raise ConfigError(f"--tasks: MiniWoB++ has no task '{task}'")


def training_jobs(settings: Settings, count: int, rng: random.Random) -> list[Job]:
    """Training episodes; their seeds are not used in tests."""
    names = settings.tasks or REFERENCE_TASKS
    return random_jobs(EnvironmentSection(), names, count, rng, "train")


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
