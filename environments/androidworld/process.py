"""AndroidWorld in separate processes, one for each emulator.

    emulators = [Emulator(console_port=5554 + 2 * k, grpc_port=8554 + k, start=...) for k in (0, 1)]
    devices = AndroidWorldDevices(emulators)
    async with Rollouts([LocalWorker(devices.environment, slots=len(emulators))]) as rollouts:
        ...

Upstream's modules have state, its calls block, and it can hang with the device. A process can be
killed, and it can run in another Python, which has upstream's pinned requirements (see ``python``).

Calls and answers are lines of JSON on the process's standard input and output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.androidworld.emulator import Emulator
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation

PYTHON = "SWARM_UI_ANDROID_WORLD_PYTHON"
"""Environment variable: a Python that has android_world."""
STEP, RESET = 60.0, 600.0
"""Time limits in seconds for a step and for the set-up of a task."""
_LINE_LIMIT = 2**30
"""Maximum length of an answer in bytes; it may hold a screenshot."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the environment in the process."""

    family: str = "android_world"
    device: Emulator | Literal["handset"] = "handset"
    """``handset``: the simulated device, without pauses."""
    pause: float | None = 1.0
    screenshots: bool = False
    budget: int | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the process."""

    do: Literal["tasks", "reset", "step", "close"]
    task: str = ""
    seed: int = 0
    action: Action | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of the process."""

    tasks: tuple[str, ...] = ()
    observation: Observation | None = None
    step: Step | None = None
    fault: str = ""
    """Message of an ``EnvironmentFault``."""
    refused: str = ""
    """Message of a ``ConfigError``."""


class AndroidWorldProcess:
    """:class:`AndroidWorldEnvironment` behind a pipe.

    Args:
        settings: the device, the task family and the observations.
        step_timeout: time limit of a step in seconds. After that, the process is killed and
            the step raises a fault. The next reset starts a new process.
        reset_timeout: time limit for the set-up of a task.
        python: the Python to run; by default the one named by :data:`PYTHON`, else this one.
        log: file to which upstream's output is appended; ``None`` drops the output.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        step_timeout: float = STEP,
        reset_timeout: float = RESET,
        python: str | None = None,
        log: Path | None = None,
    ) -> None:
        self._settings = settings
        self._limits = {"step": step_timeout}
        self._slow = reset_timeout
        self._python = python or os.environ.get(PYTHON) or sys.executable
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: tuple[str, ...] = ()
        self._on_close: Callable[[], None] = _nothing

    @property
    def name(self) -> str:
        simulated = self._settings.device == "handset"
        return f"{self._settings.family} (simulated)" if simulated else self._settings.family

    @property
    def tasks(self) -> Sequence[str]:
        """The tasks. Empty before :meth:`start` or :meth:`reset`."""
        return self._tasks

    @property
    def process_id(self) -> int | None:
        """Id of the running process; ``None`` if no process runs."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if self._process is not None and running else None

    async def start(self) -> None:
        """Start the process and ask it for the tasks. ``reset`` calls this method.

        Raises:
            ConfigError: its Python does not have android_world. The message says what to do.
        """
        if self.process_id is None:
            await self._open()
            try:
                self._tasks = (await self._ask(Call(do="tasks"))).tasks
            except ConfigError:  # the next start must say it again
                await self._kill()
                raise

    async def reset(self, *, task: str, seed: int) -> Observation:
        device = self._settings.device
        if isinstance(device, Emulator) and device.start and not await device.healthy():
            await self._kill()
            await device.restart()
        await self.start()
        answer = await self._ask(Call(do="reset", task=task, seed=seed))
        assert answer.observation is not None
        return answer.observation

    async def step(self, action: Action) -> Step:
        if self.process_id is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        answer = await self._ask(Call(do="step", action=action))
        assert answer.step is not None
        return answer.step

    async def close(self) -> None:
        try:
            if self.process_id is not None:
                with contextlib.suppress(EnvironmentFault):
                    await self._ask(Call(do="close"))
            await self._kill()
        finally:
            closed, self._on_close = self._on_close, _nothing
            closed()

    async def _ask(self, call: Call) -> Answer:
        seconds = self._limits.get(call.do, self._slow)
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                process.stdin.write(msgspec.json.encode(call) + b"\n")
                answer = msgspec.json.decode(await process.stdout.readline(), type=Answer)
        except TimeoutError as error:
            await self._kill()
            raise EnvironmentFault(
                f"{self.name}: '{call.do}' took more than {seconds:.0f} s; its process was ended"
            ) from error
        except (ConnectionError, ValueError) as error:  # no answer, or not an answer
            code = process.returncode
            await self._kill()
            raise EnvironmentFault(
                f"{self.name}: the process ended in '{call.do}' (exit code {code}); its output "
                f"is {f'in {self._log}' if self._log else 'lost: give a log file'}"
            ) from error
        except BaseException:  # re-raised: if cancelled, the next call would read this answer
            await self._kill()
            raise
        if answer.refused:
            raise ConfigError(answer.refused)
        if answer.fault:
            raise EnvironmentFault(answer.fault)
        return answer

    async def _open(self) -> None:
        await self._kill()
        settings = msgspec.json.encode(self._settings).decode()
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(self._log.open("ab")) if self._log else subprocess.DEVNULL
            try:
                self._process = await asyncio.create_subprocess_exec(
                    self._python, "-u", "-m", "swarm_ui.environments.androidworld.worker", settings,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, limit=_LINE_LIMIT,
                    start_new_session=True, env=_environment(),
                )  # fmt: skip
            except OSError as error:
                raise ConfigError(f"{self.name}: cannot run {self._python!r}: {error}") from error

    async def _kill(self) -> None:
        """Kill the process and its child processes."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if process.stdin is not None:
            process.stdin.close()


class AndroidWorldDevices:
    """Environments for a worker (:class:`~swarm_ui.rollout.LocalWorker`), one emulator each.

    After a fault the worker closes an environment and makes a new one. The new one takes the
    emulator of the closed one, and restarts the emulator if it is dead.

    Args:
        devices: the emulators; ``"handset"`` for a simulated one.
        settings: the other settings; their ``device`` is ignored.
        options: further arguments for :class:`AndroidWorldProcess`.
    """

    def __init__(
        self,
        devices: Sequence[Emulator | Literal["handset"]],
        settings: Settings | None = None,
        **options: object,
    ) -> None:
        if not devices:
            raise ConfigError("AndroidWorldDevices: at least one device is needed")
        ports = [(d.console_port, d.grpc_port) for d in devices if isinstance(d, Emulator)]
        flat = [port for pair in ports for port in pair]
        if len(set(flat)) != len(flat):
            raise ConfigError(f"AndroidWorldDevices: two emulators share a port, among {flat}")
        self._free = deque(devices)
        self._settings = settings or Settings()
        self._options = options

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
        settings = msgspec.structs.replace(self._settings, device=device)
        leased = AndroidWorldProcess(settings, **self._options)  # type: ignore[arg-type]
        leased._on_close = lambda: self._free.append(device)
        return leased


def _nothing() -> None:
    pass


def _environment() -> dict[str, str]:
    """Environment variables with which the other Python finds this installation of the library."""
    import swarm_ui

    here = str(Path(swarm_ui.__file__).resolve().parent.parent)
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
