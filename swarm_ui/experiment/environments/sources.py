"""Sources of training data that no agent is evaluated on: recordings."""

from __future__ import annotations

from collections.abc import Iterator
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
)

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut


@asynccontextmanager
async def _open_recordings(section: EnvironmentSection) -> Opening:
    read = read_demonstrations if section.name == DEMONSTRATIONS.name else read_android_records
    recordings = read(Path(section.data))
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
SOURCES: dict[str, EnvironmentSpec] = {
    spec.name: spec for spec in (DEMONSTRATIONS, ANDROID_RECORDS)
}
