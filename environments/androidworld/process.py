"""AndroidWorld in a process of its own, one for each emulator, and a pool of them.

    emulators = [Emulator(console_port=5554 + 2 * k, grpc_port=8554 + k, start=...) for k in (0, 1)]
    devices = AndroidWorldDevices(emulators)
    async with EnvironmentPool(devices.environment, len(emulators)) as pool:
        ...

Upstream keeps state in its modules, blocks, and can hang with the device. A process can be ended,
and it may run in another Python, with upstream's own pins: name it in ``python``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
import sys
from collections import deque
from collections.abc import Sequence
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
"""Seconds that a step, and setting up a task, may take."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is to make."""

    family: str = "android_world"
    device: Emulator | Literal["handset"] = "handset"
    """``handset``: the simulated one, without waiting for it."""
    pause: float | None = 1.0
    screenshots: bool = False
    budget: int | None = None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What the process is asked."""

    do: Literal["tasks", "reset", "step", "close"]
    task: str = ""
    seed: int = 0
    action: Action | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What it says."""

    tasks: tuple[str, ...] = ()
    observation: Observation | None = None
    step: Step | None = None
    fault: str = ""
    """The world broke."""
    refused: str = ""
    """The caller's mistake."""


class AndroidWorldProcess:
    """:class:`AndroidWorldEnvironment` behind a pipe.

    Args:
        settings: the device, the task family, and how to look at it.
        step_timeout: seconds that a step may take; then the process is ended and the step is a
            fault. The next reset starts a new one.
        reset_timeout: the same for setting up a task.
        python: the Python to run; by default the one named by :data:`PYTHON`, else this one.
        log: file that what upstream prints is added to; ``None``: it is dropped.
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
        self._pipe: (
            tuple[asyncio.StreamReader, asyncio.ReadTransport, asyncio.WriteTransport] | None
        ) = None
        self._tasks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        simulated = self._settings.device == "handset"
        return f"{self._settings.family} (simulated)" if simulated else self._settings.family

    @property
    def tasks(self) -> Sequence[str]:
        """Known once :meth:`start` or :meth:`reset` was called; empty before."""
        return self._tasks

    @property
    def process_id(self) -> int | None:
        """Of the process that runs; ``None``: none does."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if self._process is not None and running else None

    async def start(self) -> None:
        """Start the process and ask it for the tasks; ``reset`` does so by itself.

        Raises:
            ConfigError: android_world is missing there; the message says what to install.
        """
        if self.process_id is None:
            await self._open()
            self._tasks = (await self._ask(Call(do="tasks"))).tasks

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
        if self.process_id is not None:
            with contextlib.suppress(EnvironmentFault):
                await self._ask(Call(do="close"))
        await self._kill()

    async def _ask(self, call: Call) -> Answer:
        seconds = self._limits.get(call.do, self._slow)
        assert self._pipe is not None
        reader, _, writer = self._pipe
        try:
            async with asyncio.timeout(seconds):
                writer.write(frame(msgspec.json.encode(call)))
                answer = msgspec.json.decode(await read(reader), type=Answer)
        except TimeoutError as error:
            await self._kill()
            raise EnvironmentFault(
                f"{self.name}: '{call.do}' took more than {seconds:.0f} s; its process was ended"
            ) from error
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError) as error:
            code = self._process.returncode if self._process else None
            await self._kill()
            raise EnvironmentFault(
                f"{self.name}: the process ended in '{call.do}' (exit code {code}); what it said "
                f"is {f'in {self._log}' if self._log else 'lost: give a log file'}"
            ) from error
        except BaseException:
            await self._kill()  # cancelled: the answer would be taken for the next call's
            raise
        if answer.refused:
            raise ConfigError(answer.refused)
        if answer.fault:
            raise EnvironmentFault(answer.fault)
        return answer

    async def _open(self) -> None:
        await self._kill()
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as stack:
            output = (
                stack.enter_context(self._log.open("ab"))
                if self._log
                else asyncio.subprocess.DEVNULL
            )
            settings = msgspec.json.encode(self._settings).decode()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    self._python, "-u", "-m", "swarm_ui.environments.androidworld.worker",
                    str(theirs_in), str(theirs_out), settings,
                    stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
                    pass_fds=(theirs_in, theirs_out), start_new_session=True, env=_environment(),
                )  # fmt: skip
            except OSError as error:
                for end in (ours_in, ours_out):
                    os.close(end)
                raise ConfigError(f"{self.name}: cannot run {self._python!r}: {error}") from error
            finally:
                for end in (theirs_in, theirs_out):
                    os.close(end)
        reader = asyncio.StreamReader()
        source, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours_in, "rb")
        )
        writer, _ = await loop.connect_write_pipe(asyncio.Protocol, os.fdopen(ours_out, "wb"))
        self._pipe = reader, source, writer

    async def _kill(self) -> None:
        """End the process, and what it started."""
        process, self._process = self._process, None
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe[1].close()
            pipe[2].close()
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


class AndroidWorldDevices:
    """Environments for an :class:`~swarm_ui.rollout.pool.EnvironmentPool`, one emulator each.

    A place that has a fault gets a new environment: it takes the emulator that the closed one gave
    back, starts it again if it is dead, and goes on.

    Args:
        devices: the emulators; ``"handset"`` for a simulated one.
        settings: the rest of the settings; their ``device`` is not looked at.
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
        """One on a device that is free.

        Raises:
            ConfigError: there are more places than devices.
        """
        if not self._free:
            raise ConfigError("AndroidWorldDevices: every device is in use; is the pool too large?")
        device = self._free.popleft()
        settings = msgspec.structs.replace(self._settings, device=device)
        return _Leased(settings, self._free, self._options)


class _Leased(AndroidWorldProcess):
    """Gives its device back when it is closed."""

    def __init__(
        self,
        settings: Settings,
        free: deque[Emulator | Literal["handset"]],
        options: dict[str, object],
    ) -> None:
        super().__init__(settings, **options)  # type: ignore[arg-type]
        self._device: Emulator | Literal["handset"] | None = settings.device
        self._free = free

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            device, self._device = self._device, None
            if device is not None:
                self._free.append(device)


def frame(data: bytes) -> bytes:
    """A message with its length before it."""
    return struct.pack(">I", len(data)) + data


async def read(reader: asyncio.StreamReader) -> bytes:
    """The next message."""
    (length,) = struct.unpack(">I", await reader.readexactly(4))
    return await reader.readexactly(length)


def _environment() -> dict[str, str]:
    """This process' variables; the other Python finds this library where this one has it."""
    import swarm_ui

    here = str(Path(swarm_ui.__file__).resolve().parent.parent)
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
