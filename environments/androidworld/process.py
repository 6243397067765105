"""AndroidWorld in a separate process for each device.

    emulator = Emulator(console_port=5554, grpc_port=8554)
    worker = LocalWorker(partial(AndroidWorldProcess, emulator), slots=1)

Upstream's modules have state, its calls block, and it can hang with the device. The process may run
in another Python, which has upstream's pinned requirements (:data:`PYTHON`).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment, Device
from swarm_ui.environments.subprocess import STEP, ProcessEnvironment

PYTHON = "SWARM_UI_ANDROID_WORLD_PYTHON"
"""Environment variable: a Python that has android_world."""


def make(device: object, **settings: Any) -> AndroidWorldEnvironment:
    """The environment, for a process that does nothing else."""
    if device == "handset":
        time.sleep = lambda seconds: None  # upstream waits for a device that takes time
        settings["pause"] = 0.0
    return AndroidWorldEnvironment(msgspec.convert(device, Device), **settings)


class AndroidWorldProcess(ProcessEnvironment):
    """:class:`AndroidWorldEnvironment` in a process of its own.

    Args:
        device: an emulator, or ``"handset"`` for the simulated handset, which needs no pauses.
        pause, screenshots: see :class:`AndroidWorldEnvironment`.
        step_timeout: see :class:`~swarm_ui.environments.subprocess.ProcessEnvironment`.
        python: the Python to run; by default the one named by :data:`PYTHON`, else this one.
        log: file to which upstream's output is appended; ``None`` drops the output.
    """

    def __init__(
        self,
        device: Device,
        *,
        pause: float = 1.0,
        screenshots: bool = False,
        step_timeout: float = STEP,
        python: str | None = None,
        log: Path | None = None,
    ) -> None:
        super().__init__(
            f"{__name__}:make",
            {
                "device": msgspec.to_builtins(device),
                "pause": pause,
                "screenshots": screenshots,
            },
            name="android_world (simulated)" if device == "handset" else "android_world",
            python=python or os.environ.get(PYTHON),
            step_timeout=step_timeout,
            log=log,
        )
