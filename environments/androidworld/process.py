"""AndroidWorld in separate processes, one for each emulator.

    emulators = [Emulator(console_port=5554 + 2 * k, grpc_port=8554 + k, start=...) for k in (0, 1)]
    devices = AndroidWorldDevices(emulators)
    async with Rollouts([LocalWorker(devices.environment, slots=len(emulators))]) as rollouts:
        ...

Upstream's modules have state, its calls block, and it can hang with the device. The process may run
in another Python, which has upstream's pinned requirements (:data:`PYTHON`).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from swarm_ui.environments.androidworld.emulator import Emulator
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.environments.subprocess import RESET, STEP, ProcessEnvironment
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation

PYTHON = "SWARM_UI_ANDROID_WORLD_PYTHON"
"""Environment variable: a Python that has android_world."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the environment in the process."""

    family: str = "android_world"
    device: Emulator | Literal["handset"] = "handset"
    """``handset``: the simulated device, without pauses."""
    pause: float | None = 1.0
    screenshots: bool = False
    budget: int | None = None


def make(**fields: object) -> AndroidWorldEnvironment:
    """The environment that :class:`Settings` with these fields describe, for a process that does
    nothing else."""
    settings = msgspec.convert(fields, Settings)
    if settings.device == "handset":
        from swarm_ui.environments.androidworld import handset

        handset.no_waiting().__enter__()
        return AndroidWorldEnvironment(
            family=settings.family, pause=0.0, screenshots=settings.screenshots,
            budget=settings.budget, connect=handset.connect,
        )  # fmt: skip
    return AndroidWorldEnvironment(
        family=settings.family, pause=settings.pause, screenshots=settings.screenshots,
        budget=settings.budget, launch=settings.device.launch,
    )  # fmt: skip


class AndroidWorldProcess(ProcessEnvironment):
    """:class:`AndroidWorldEnvironment` in a process of its own.

    Args:
        settings: the device, the task family and the observations.
        step_timeout: see :class:`~swarm_ui.environments.subprocess.ProcessEnvironment`.
        reset_timeout: see there.
        python: the Python to run; by default the one named by :data:`PYTHON`, else this one.
        log: file to which upstream's output is appended; ``None`` drops the output.
        on_close: called once, when the environment is closed.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        step_timeout: float = STEP,
        reset_timeout: float = RESET,
        python: str | None = None,
        log: Path | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        simulated = settings.device == "handset"
        super().__init__(
            f"{__name__}:make",
            msgspec.to_builtins(settings),
            name=f"{settings.family} (simulated)" if simulated else settings.family,
            python=python or os.environ.get(PYTHON),
            step_timeout=step_timeout,
            reset_timeout=reset_timeout,
            log=log,
        )
        self._device = settings.device
        self._on_close = on_close

    async def reset(self, *, task: str, seed: int) -> Observation:
        """Start an episode, after a restart of the emulator if it is dead."""
        device = self._device
        if isinstance(device, Emulator) and device.start and not await device.healthy():
            await self.kill()
            await device.restart()
        return await super().reset(task=task, seed=seed)

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            closed, self._on_close = self._on_close, None
            if closed is not None:
                closed()


class AndroidWorldDevices:
    """Environments for a worker (:class:`~swarm_ui.rollout.LocalWorker`), one emulator each.

    After a fault the worker closes an environment and makes a new one. The new one takes the
    emulator of the closed one, and restarts the emulator if it is dead.

    Args:
        devices: the emulators; ``"handset"`` for a simulated one.
        settings: the other settings; their ``device`` is ignored.
        step_timeout: see :class:`~swarm_ui.environments.subprocess.ProcessEnvironment`.
        python: the Python to run; by default the one named by :data:`PYTHON`, else this one.
    """

    def __init__(
        self,
        devices: Sequence[Emulator | Literal["handset"]],
        settings: Settings | None = None,
        *,
        step_timeout: float = STEP,
        python: str | None = None,
    ) -> None:
        if not devices:
            raise ConfigError("AndroidWorldDevices: at least one device is needed")
        ports = [(d.console_port, d.grpc_port) for d in devices if isinstance(d, Emulator)]
        flat = [port for pair in ports for port in pair]
        if len(set(flat)) != len(flat):
            raise ConfigError(f"AndroidWorldDevices: two emulators share a port, among {flat}")
        self._free = deque(devices)
        self._settings = settings or Settings()
        self._step_timeout, self._python = step_timeout, python

    def environment(self) -> AndroidWorldProcess:
        """An environment on a free device.

        Raises:
            ConfigError: every device is in use.
        """
        if not self._free:
            raise ConfigError(
                "AndroidWorldDevices: every device is in use; has the worker more slots?"
            )
        device = self._free.popleft()
        return AndroidWorldProcess(
            msgspec.structs.replace(self._settings, device=device),
            step_timeout=self._step_timeout,
            python=self._python,
            on_close=lambda: self._free.append(device),
        )
