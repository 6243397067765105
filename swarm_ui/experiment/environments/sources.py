"""Sources of training data that no agent is evaluated on: recordings, and invented screens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_ui.environments.recorded.android_records import read_android_records
from swarm_ui.environments.recorded.demonstrations import read_demonstrations
from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments.spec import (
    EnvironmentSpec,
    OpenEnvironment,
    Opening,
    Seeds,
)
from swarm_ui.rollout.pool import Job

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut


@asynccontextmanager
async def _open_recordings(section: EnvironmentSection) -> Opening:
    if section.name == DEMONSTRATIONS.name:
        recordings, _, _ = read_demonstrations(Path(section.data))
    else:
        recordings = read_android_records(Path(section.data)).recordings
    yield OpenEnvironment(
        recordings.environment,
        jobs=lambda asked: recordings.jobs(asked.tasks or None)[: asked.episodes or None],
    )


def _needs_data(section: EnvironmentSection) -> Iterator[Finding]:
    if not section.data:
        yield ("environment", "data"), f"{section.name} needs your recordings: --data FILE"


def _nothing() -> HeldOut:
    """A rule that holds nothing out. Recordings are checked against the rule of the environment in
    which they were made."""
    from swarm_ui.optim.stage1 import HeldOut

    return HeldOut()


@asynccontextmanager
async def _open_screens(section: EnvironmentSection) -> Opening:
    from swarm_ui.nodes.models.tiny_agent.vocabulary import GENERAL_WORDS
    from swarm_ui.optim.stage1.corpus.invented_screens import InventedScreens

    words = [word for word in GENERAL_WORDS if word.isalpha() and len(word) > 2]
    yield OpenEnvironment(lambda: InventedScreens(words))


def _screen_tasks(section: EnvironmentSection) -> Sequence[str]:
    return section.tasks or ("pages", "devices")


def _screen_jobs(
    section: EnvironmentSection, names: Sequence[str], count: int, rng: random.Random, seeds: Seeds
) -> list[Job]:
    return [(rng.choice(names), rng.randrange(2**31)) for _ in range(count)]


DEMONSTRATIONS, ANDROID_RECORDS = (
    EnvironmentSpec(
        name=name,
        label=label,
        open=_open_recordings,
        findings=_needs_data,
        held_out=_nothing,
        reads=("data",),
    )
    for name, label in (
        ("demonstrations", "Episodes that a person played (swarm-ui play --out)"),
        ("android-records", "Demonstrations on Android devices, in AndroidControl's style"),
    )
)
SCREENS = EnvironmentSpec(
    name="screens",
    label="Invented screens, one action each",
    open=_open_screens,
    tasks=_screen_tasks,
    known_tasks=lambda: ("pages", "devices"),
    training_jobs=_screen_jobs,
    held_out=_nothing,
)
SOURCES: dict[str, EnvironmentSpec] = {
    spec.name: spec for spec in (SCREENS, DEMONSTRATIONS, ANDROID_RECORDS)
}
