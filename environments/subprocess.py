"""An environment in another process, and if wanted in another Python.

    env = ProcessEnvironment("my_package.worlds:make", {"level": 3}, python="/other/bin/python")

For environments whose requirements conflict with those of swarm-ui, whose calls block, or which can
hang: a process can be killed. Calls and answers are lines of JSON on the process's standard input
and output. The other Python needs ``msgspec`` and what the environment needs; it finds this
installation of swarm-ui on its import path.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

import msgspec

from swarm_ui.action import Action
from swarm_ui.engine.tasks import within
from swarm_ui.environment import Environment, Step
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation

STEP, RESET = 60.0, 600.0
"""Time limits in seconds for a step and for the set-up of a task."""
T = TypeVar("T")
_Kind = Literal["result", "fault", "refused"]
"""What an answer holds: a result, or the message of an ``EnvironmentFault`` or a ``ConfigError``.
"""
_LINE_LIMIT = 2**30
"""Maximum length of an answer in bytes; it may hold a screenshot."""


class ProcessEnvironment:
    """The environment that a function makes in another process.

    Args:
        factory: ``module:function``, called in the process.
        arguments: keyword arguments of the function, as far as JSON can hold them.
        name: name of the environment in results; default: ``factory``.
        python: the Python to run; default: this one.
        step_timeout: seconds after which a step's process is killed and the step raises a fault;
            the next reset starts another. Time in which this process was busy does not count.
        log: file to which the process's output is appended; ``None`` drops the output.
    """

    def __init__(
        self,
        factory: str,
        arguments: Mapping[str, object] | None = None,
        *,
        name: str = "",
        python: str | None = None,
        step_timeout: float = STEP,
        log: Path | None = None,
    ) -> None:
        self._command = (factory, msgspec.json.encode(arguments or {}).decode())
        self.name = name or factory
        self.tasks: Sequence[str] = ()
        """The tasks. Empty before :meth:`start` or :meth:`reset`."""
        self._python, self._log = python or sys.executable, log
        self._step_timeout = step_timeout
        self._process: asyncio.subprocess.Process | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def process_id(self) -> int | None:
        """Id of the running process; ``None`` if no process runs."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    async def start(self) -> None:
        """Start the process and ask it for the tasks. ``reset`` calls this method.

        Raises:
            ConfigError: the environment cannot be made there. The message says why.
        """
        if self.process_id is None:
            await self._open()
            try:
                self.tasks = await self._ask(tuple[str, ...], "tasks")
            except ConfigError:  # the next start must say it again
                await self.kill()
                raise

    async def reset(self, *, task: str, seed: int) -> Observation:
        await self.start()
        return await self._ask(Observation, "reset", task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        if self.process_id is None:
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        return await self._ask(Step, "step", action=action)

    async def close(self) -> None:
        if self.process_id is not None:
            with contextlib.suppress(EnvironmentFault):
                await self._ask(type(None), "close")
        await self.kill()

    async def kill(self) -> None:
        """Kill the process and its child processes, and delete their temporary files."""
        process, self._process = self._process, None
        folder, self._folder = self._folder, None
        if process is not None:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            if process.stdin is not None:
                process.stdin.close()
        if folder is not None:
            folder.cleanup()

    async def _ask(self, type_: type[T], call: str, **given: object) -> T:
        seconds = self._step_timeout if call == "step" else RESET
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode((call, given)) + b"\n")
            line = await within(seconds, process.stdout.readline())
            kind, told = msgspec.json.decode(line, type=tuple[_Kind, msgspec.Raw])
        except BaseException as error:  # re-raised; else the next call would read this answer
            code = process.returncode
            await self.kill()
            output = f"is in {self._log}" if self._log else "is lost: give a log file"
            if isinstance(error, TimeoutError):
                why = f"'{call}' took more than {seconds:.0f} s; its process was ended"
            elif isinstance(error, ConnectionError | ValueError):  # no answer, or not an answer
                why = f"the process ended in '{call}' (exit code {code}); its output {output}"
            else:
                raise
            raise EnvironmentFault(f"{self.name}: {why}") from error
        if kind == "result":
            return msgspec.json.decode(told, type=type_)
        message = msgspec.json.decode(told, type=str)
        raise EnvironmentFault(message) if kind == "fault" else ConfigError(message)

    async def _open(self) -> None:
        await self.kill()
        self._folder = tempfile.TemporaryDirectory(prefix="swarm-ui-", ignore_cleanup_errors=True)
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(self._log.open("ab")) if self._log else subprocess.DEVNULL
            try:
                self._process = await asyncio.create_subprocess_exec(
                    self._python, "-u", "-m", "swarm_ui.environments.subprocess", *self._command,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, limit=_LINE_LIMIT,
                    start_new_session=True, env=_variables(self._folder.name),
                )  # fmt: skip
            except OSError as error:
                await self.kill()
                raise ConfigError(f"{self.name}: cannot run {self._python!r}: {error}") from error


def _variables(folder: str) -> dict[str, str]:
    """Environment variables of the process: it finds this installation of the library, and has a
    folder of its own for temporary files, because programs use fixed names in it."""
    import swarm_ui

    here = str(Path(swarm_ui.__file__).resolve().parent.parent)
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    found = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "TMPDIR": folder}
    return {**os.environ, **found}


# -- in the process -------------------------------------------------------------------------------


async def _result(make: Callable[[], Environment], call: str, given: dict[str, Any]) -> object:
    env = make()
    if call == "tasks":
        return env.tasks
    if call == "step":
        given = {"action": msgspec.convert(given["action"], Action)}
    return await getattr(env, call)(**given)


async def _serve(make: Callable[[], Environment], calls: BinaryIO, answers: BinaryIO) -> None:
    """Answer calls until the input ends, so the process never outlives the one that started it."""
    while line := calls.readline():
        kind, told = "result", None
        try:
            told = await _result(make, *msgspec.json.decode(line))
        except ConfigError as error:  # such as: a package is not installed
            kind, told = "refused", str(error)
        except EnvironmentFault as error:
            kind, told = "fault", str(error)
        answers.write(msgspec.json.encode((kind, told)) + b"\n")
        answers.flush()


def _standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private copies of the standard input and output. The environment's code and its child
    processes then read an empty input and write to the log."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), 0)
    os.dup2(2, 1)
    return calls, answers


def main(factory: str, arguments: str) -> None:
    """Serve the environment that a function makes; run by :class:`ProcessEnvironment`."""
    calls, answers = _standard_streams()
    module, _, function = factory.partition(":")

    @functools.cache
    def make() -> Environment:
        made: Environment = getattr(importlib.import_module(module), function)(
            **msgspec.json.decode(arguments)
        )
        return made

    with calls, answers:
        asyncio.run(_serve(make, calls, answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
