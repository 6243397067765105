"""Test episodes of the demo on a device."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.settings import Settings
from swarm_ui.node import derive
from swarm_ui.rollout import Job


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
