"""AndroidWorld: on a real emulator, and on the simulated handset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from swarm_ui.environments.androidworld.environment import FAMILIES
from swarm_ui.environments.androidworld.suite import suite
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection, Finding
from swarm_ui.experiment.environments.spec import EnvironmentSpec, OpenEnvironment, Opening
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.rollout import Job


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    from swarm_ui.environments.androidworld.emulator import Emulator
    from swarm_ui.environments.androidworld.process import AndroidWorldProcess
    from swarm_ui.environments.androidworld.process import Settings as DeviceSettings

    emulator = Emulator() if section.name == EMULATOR.name else None
    if emulator is not None:
        emulator.expect()
    settings = DeviceSettings(
        family=section.family, device=emulator or "handset", screenshots=section.screenshots
    )
    opened = OpenEnvironment(
        lambda: AndroidWorldProcess(settings), max_concurrency=1 if emulator else None
    )
    if section.suite_seed is not None:
        names = section.tasks or tuple(await opened.tasks())
        found = suite(names, combinations=section.combinations, seed=section.suite_seed)
        opened = replace(opened, jobs=lambda asked: found[: asked.episodes or None])
    yield opened


def _findings(section: EnvironmentSection) -> Iterator[Finding]:
    if section.family not in FAMILIES:
        expected = ", ".join(FAMILIES)
        yield ("environment", "family"), f"no family '{section.family}'; expected {expected}"
    if section.combinations > 1 and section.suite_seed is None:
        yield ("environment", "combinations"), "combinations are those of a suite: --suite-seed N"


EMULATOR, HANDSET = (
    EnvironmentSpec(
        name=name,
        label=label,
        open=_open,
        findings=_findings,
        resource=resource,
        reads=("family", "suite_seed", "combinations", "screenshots"),
        fixed_episodes=lambda section: section.suite_seed is not None,
    )
    for name, resource, label in (
        ("androidworld", "emulator", "AndroidWorld on an emulator"),
        ("handset", "handset", "The handset is simulated: its scores are not AndroidWorld scores"),
    )
)


def device_jobs(settings: Settings, known: Sequence[str]) -> list[Job]:
    """Test episodes on a device: the tasks that are named, or all in turn.

    Raises:
        ConfigError: there is no such task.
    """
    for task in settings.tasks:
        if task not in known:
            raise ConfigError(f"--tasks: AndroidWorld has no task '{task}'")
    names = settings.tasks or tuple(known)
    return [
        (names[k % len(names)], derive(settings.seed, "device", k) % 1_000_000)
        for k in range(settings.episodes_test)
    ]
