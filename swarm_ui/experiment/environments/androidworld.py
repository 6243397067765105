"""AndroidWorld: on a real emulator, and on the simulated handset."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import asynccontextmanager

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments.spec import EnvironmentSpec, OpenEnvironment, Opening
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.rollout.pool import Job


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    from swarm_ui.environments.androidworld.emulator import Emulator
    from swarm_ui.environments.androidworld.process import AndroidWorldProcess
    from swarm_ui.environments.androidworld.process import Settings as DeviceSettings

    emulator = Emulator() if section.name == EMULATOR.name else None
    if emulator is not None:
        emulator.expect()
    settings = DeviceSettings(device=emulator or "handset", screenshots=section.screenshots)
    yield OpenEnvironment(
        lambda: AndroidWorldProcess(settings), max_concurrency=1 if emulator else None
    )


EMULATOR = EnvironmentSpec(name="androidworld", label="AndroidWorld on an emulator", open=_open)
HANDSET = EnvironmentSpec(
    name="handset",
    label="The handset is simulated: its scores are not AndroidWorld scores",
    open=_open,
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
