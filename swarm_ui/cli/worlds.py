"""Which environment, told by its name, and which of its episodes."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, cast, get_args

import msgspec

from swarm_ui.cli.config import EnvironmentSection, Finding
from swarm_ui.cli.models import made
from swarm_ui.cli.results import Measure, Played
from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.node import derive
from swarm_ui.rollout.pool import Job, MakeEnvironment
from swarm_ui.trace.records import Episode

NAMES = ("phone", "miniwob", "androidworld", "handset", "mind2web")
LABELS = {
    "phone": "The phone is simulated: its scores are not AndroidWorld scores",
    "handset": "The handset is simulated: its scores are not AndroidWorld scores",
    "miniwob": "Real web pages in a real browser",
    "androidworld": "AndroidWorld on an emulator",
    "mind2web": "Recorded pages, offline",
}
_PHONE = ("parameters", "templates", "apps", "validation", "train")
SUITES = ("core", "extended")
_WEB = ("reference", "blind", "all")
_EPISODES = 20


@dataclass(frozen=True, slots=True)
class World:
    """An environment that can be made any number of times."""

    make: MakeEnvironment
    label: str
    most: int | None = None
    """How many episodes it can play at the same time; ``None``: any number."""
    data: Any = None
    """The data set behind it, if it is one."""


def splits_of(section: EnvironmentSection) -> tuple[str, ...]:
    """The splits it knows; the first is the default, a test. Empty: it has none."""
    if section.name == "mind2web":
        from swarm_ui.environments.mind2web import Split

        return tuple(sorted(get_args(Split), key=lambda split: split == "train"))
    return {"phone": _PHONE, "miniwob": _WEB}.get(section.name, ())


def findings(section: EnvironmentSection, splits: Sequence[str] = ()) -> Iterator[Finding]:
    """Whatever is wrong with the choice, before anything starts.

    Args:
        section: the choice.
        splits: these instead of the section's.
    """
    at = "environment"
    if section.name not in NAMES and ":" not in section.name:
        near = get_close_matches(section.name, NAMES, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        expected = f"expected {', '.join(NAMES)} or module:factory{hint}"
        yield (at, "name"), f"no environment '{section.name}': {expected}"
        return
    known = splits_of(section)
    for split in splits or (section.split,):
        if split and split not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            yield (at, "split"), f"'{section.name}' has no split '{split}'; {has}"
    if section.name == "phone" and section.suite not in SUITES:
        yield (at, "suite"), f"no suite '{section.suite}'; expected {' or '.join(SUITES)}"
    if section.name == "mind2web" and not section.data:
        yield (at, "data"), "mind2web needs your copy of the data: --data FOLDER"
    if section.name == "miniwob":
        try:
            checked_browser()
        except ConfigError as error:
            yield (at, "name"), str(error)
            return
    if section.name in ("phone", "miniwob"):
        tasks = all_tasks(section)
        for task in section.tasks:
            if said := _no(task, tasks, section):
                yield (at, "tasks"), said


def check(section: EnvironmentSection) -> None:
    """As :func:`findings`. Raises ``ConfigError`` at the first."""
    for _, said in findings(section):
        raise ConfigError(said)


def checked_browser() -> str:
    """Path of the browser. Raises ``ConfigError`` that says what is missing."""
    from swarm_ui.environments.miniwob import all_html_tasks, find_browser
    from swarm_ui.environments.miniwob.browser import INSTALL_HINT

    try:
        import websockets  # noqa: F401
    except ImportError as error:
        raise MissingExtra("web", "MiniWoB++", "websockets") from error
    all_html_tasks()
    found = find_browser()
    if found is None:
        raise ConfigError(INSTALL_HINT)
    return str(found)


@asynccontextmanager
async def opened(section: EnvironmentSection) -> AsyncIterator[World]:
    """The environment, ready to be made; what it needs is shut down at the end.

    Raises:
        EnvironmentFault: no emulator answers.
    """
    shots = section.screenshots
    label = LABELS.get(section.name, section.name)
    if section.name == "phone":
        from swarm_ui.environments.phone import PhoneEnvironment

        yield World(lambda: PhoneEnvironment(screenshots=shots), label)
    elif section.name == "miniwob":
        from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment

        async with MiniWobBrowser(pages=1) as browser:
            open_page = browser.open_page
            yield World(lambda: MiniWobEnvironment(open_page, screenshots=shots), label)
    elif section.name in ("androidworld", "handset"):
        from swarm_ui.environments.androidworld.emulator import Emulator
        from swarm_ui.environments.androidworld.process import AndroidWorldProcess, Settings

        if section.name == "handset":
            simulated = Settings(device="handset", screenshots=shots)
            yield World(lambda: AndroidWorldProcess(simulated), label)
        else:
            device = Emulator()
            device.expect()
            real = Settings(device=device, screenshots=shots)
            yield World(lambda: AndroidWorldProcess(real), label, most=1)
    elif section.name == "mind2web":
        from swarm_ui.environments.mind2web import Mind2Web, Split

        split = cast(Split, section.split or splits_of(section)[0])
        data = Mind2Web(section.data, split, screenshots=shots)
        yield World(data.environment, label, data=data)
    else:
        yield World(lambda: _own(section.name), label)


def all_tasks(section: EnvironmentSection) -> Sequence[str]:
    """Every task, where they are known without a device."""
    if section.name == "phone":
        from swarm_ui.environments.phone import PhoneEnvironment

        return PhoneEnvironment().tasks
    from swarm_ui.environments.miniwob import all_html_tasks

    return all_html_tasks()


async def jobs_of(section: EnvironmentSection, world: World) -> list[Job]:
    """The episodes that are asked for; equal settings give equal ones."""
    n = section.episodes
    if section.name == "phone":
        return _phone_jobs(section, n or (len(section.tasks) or _EPISODES))
    if section.name == "mind2web":
        jobs = world.data.jobs(section.tasks or None)
        return jobs[: n or len(jobs)]  # type: ignore[no-any-return]
    names = section.tasks or tuple(await _tasks(section, world))
    if not names:
        raise ConfigError(f"'{section.name}' lists no tasks: name them with --task")
    count = n or (len(section.tasks) or min(len(names), _EPISODES))
    return [
        (names[k % len(names)], _seed(section, names[k % len(names)], k // len(names)))
        for k in range(count)
    ]


def training_jobs(section: EnvironmentSection, names: Sequence[str], count: int,
                  rng: random.Random) -> list[Job]:  # fmt: skip
    """Episodes to learn from: never those of :func:`jobs_of`."""
    if section.name == "phone":
        from swarm_ui.environments.phone import TRAIN_SEEDS, draw_jobs, tasks

        split = "train" if section.suite == "core" else "extended_train"
        chosen = section.tasks or tasks(cast(Any, split))
        return draw_jobs(chosen, count, rng.getrandbits(32), seeds=TRAIN_SEEDS)
    from swarm_ui.environments.miniwob.splits import TRAIN_SEEDS as WEB_SEEDS

    return [(rng.choice(names), rng.choice(WEB_SEEDS)) for _ in range(count)]


async def tasks_of(section: EnvironmentSection, world: World) -> tuple[str, ...]:
    """The tasks of a world, or those that are asked for."""
    return section.tasks or tuple(await _tasks(section, world))


def _phone_jobs(section: EnvironmentSection, n: int) -> list[Job]:
    from swarm_ui.environments.phone import (
        TEST_SEEDS,
        TRAIN_SEEDS,
        VALIDATION_SEEDS,
        draw_jobs,
        jobs,
    )

    split = section.split or _PHONE[0]
    seeds = {"validation": VALIDATION_SEEDS, "train": TRAIN_SEEDS}.get(split, TEST_SEEDS)
    if section.tasks:
        return draw_jobs(section.tasks, n, section.seed, seeds=seeds)
    by = split if split in ("parameters", "templates", "apps") else "parameters"
    suite = cast(Literal["core", "extended"], section.suite)
    return jobs(cast(Any, by), n, section.seed, seeds=seeds, suite=suite)


async def _tasks(section: EnvironmentSection, world: World) -> Sequence[str]:
    if section.name == "miniwob":
        from swarm_ui.environments.miniwob import REFERENCE_TASKS, all_html_tasks, blind_tasks

        split = section.split or _WEB[0]
        return {"reference": REFERENCE_TASKS, "blind": blind_tasks(), "all": all_html_tasks()}[
            split
        ]
    made_one: Any = world.make()
    environment: Any = await made_one if hasattr(made_one, "__await__") else made_one
    try:
        if hasattr(environment, "start"):  # in a process of its own, which knows the tasks
            await environment.start()
        return cast(Sequence[str], environment.tasks)
    finally:
        await environment.close()


def _seed(section: EnvironmentSection, task: str, number: int) -> int:
    from swarm_ui.environments.miniwob.splits import TEST_SEEDS

    return random.Random(derive(section.seed, "cli", task, number)).choice(TEST_SEEDS)


def _own(name: str) -> Environment:
    return cast(Environment, made(name, Environment))


def with_measures(figures: Played, world: World, episodes: Sequence[Episode]) -> Played:
    """The figures with those that the benchmark itself takes, if it takes some."""
    if not hasattr(world.data, "score"):
        return figures
    scores = msgspec.to_builtins(world.data.score(episodes).measures)
    return msgspec.structs.replace(figures, measures=msgspec.convert(scores, tuple[Measure, ...]))


def check_task(section: EnvironmentSection, task: str) -> None:
    """Raises ``ConfigError`` if the environment is known not to have the task."""
    if section.name in ("phone", "miniwob") and (said := _no(task, all_tasks(section), section)):
        raise ConfigError(said)


def _no(task: str, known: Sequence[str], section: EnvironmentSection) -> str:
    """What is to be said of a task that there is not; empty if there is."""
    if task in known:
        return ""
    near = get_close_matches(task, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"see: swarm-ui play {section.name}"
    return f"'{section.name}' has no task '{task}'; {hint}"
