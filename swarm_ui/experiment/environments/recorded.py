"""Mind2Web and AutoWebBench: recorded pages, offline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

from swarm_ui.environments.autowebbench import SPLITS as AUTOWEBBENCH_SPLITS
from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments.spec import EnvironmentSpec, OpenEnvironment, Opening

_MIND2WEB_SPLITS = ("test_task", "test_website", "test_domain", "train")


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    data: Any
    if section.name == MIND2WEB.name:
        from swarm_ui.environments.mind2web import Mind2Web, Split

        split = cast(Split, section.split or _MIND2WEB_SPLITS[0])
        data = Mind2Web(section.data, split, screenshots=section.screenshots)
    else:
        from swarm_ui.environments.autowebbench import AutoWebBench

        data = AutoWebBench(section.data, cast(Any, section.split or AUTOWEBBENCH_SPLITS[0]))

    yield OpenEnvironment(
        data.environment,
        jobs=lambda asked: data.jobs(asked.tasks or None)[: asked.episodes or None],
        score=lambda episodes: tuple(data.score(episodes).measures),
    )


def _findings(section: EnvironmentSection) -> Iterator[Finding]:
    if not section.data:
        at = ("environment", "data")
        yield at, f"{section.name} needs your copy of the data: --data FOLDER"


MIND2WEB, AUTOWEBBENCH = (
    EnvironmentSpec(
        name=name,
        label="Recorded pages, offline",
        open=_open,
        splits=splits,
        trains_on=trains_on,
        findings=_findings,
        reads=reads,
        fixed_episodes=lambda section: True,
    )
    for name, splits, trains_on, reads in (
        ("mind2web", _MIND2WEB_SPLITS, "train", ("data", "screenshots")),
        ("autowebbench", AUTOWEBBENCH_SPLITS, None, ("data",)),
    )
)
