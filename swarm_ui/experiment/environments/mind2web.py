"""Mind2Web: recorded pages, offline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import cast

from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments.spec import EnvironmentSpec, OpenEnvironment, Opening
from swarm_ui.rollout.pool import Job

_SPLITS = ("test_task", "test_website", "test_domain", "train")


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    from swarm_ui.environments.mind2web import Mind2Web, Split

    split = cast(Split, section.split or _SPLITS[0])
    data = Mind2Web(section.data, split, screenshots=section.screenshots)

    def jobs(section: EnvironmentSection) -> list[Job]:
        found = data.jobs(section.tasks or None)
        return found[: section.episodes or len(found)]

    yield OpenEnvironment(
        data.environment,
        jobs=jobs,
        score=lambda episodes: tuple(data.score(episodes).measures),
    )


def _findings(section: EnvironmentSection) -> Iterator[Finding]:
    if not section.data:
        at = ("environment", "data")
        yield at, "mind2web needs your copy of the data: --data FOLDER"


SPEC = EnvironmentSpec(
    name="mind2web",
    label="Recorded pages, offline",
    open=_open,
    splits=_SPLITS,
    findings=_findings,
)
