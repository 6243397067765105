"""Shared by the benchmarks: interleaved measurements of systems in separate processes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class NoResult(Exception):
    """A system did not answer, because of an error or a time-out."""


class Runner:
    """The process of a system (``peers/run_*.py``). It starts at the first request, and again
    after a time-out."""

    def __init__(self, python: str, script: Path, patience: float, *, own: bool) -> None:
        """
        Args:
            python, script: the interpreter and the script to start.
            patience: time limit in seconds for one graph, from building it to its last sample.
            own: whether it uses the import paths of this process; else it has a separate
                environment.
        """
        self.patience = patience
        self._command = [python, str(script)]
        self._environment = dict(os.environ)
        if not own:
            for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
                self._environment.pop(name, None)
        self._folder = tempfile.TemporaryDirectory(prefix="bench-")  # peers write logs into it
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""
        self.facts: dict[str, str] = {}

    def ask(self, seconds: float, /, **request: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            NoResult: the system raised an error, or did not answer in time.
        """
        process = self.start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.stop()
            raise NoResult("its process ended") from None
        answer = self._line(process, seconds)
        if "error" in answer:
            raise NoResult(answer["error"])
        return answer

    def start(self) -> subprocess.Popen[bytes]:
        """The running process, started if necessary. Raises ``NoResult`` if it does not start."""
        if self._process is not None:
            return self._process
        errors = open(Path(self._folder.name) / "stderr.txt", "ab")  # noqa: SIM115
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=self._folder.name,
            env=self._environment,
        )
        errors.close()
        self._read = b""
        process = self._process
        self.facts = self._line(process, 120)  # imports take their time
        return process

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        assert process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self.stop()
                raise NoResult(f"no result in {seconds:.0f} s")
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                code = process.wait()
                said = (Path(self._folder.name) / "stderr.txt").read_text(errors="replace")
                self.stop()
                raise NoResult(f"its process ended with {code}: {said.strip()[-300:]}")
            self._read += chunk
        line, self._read = self._read.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class Field(NamedTuple):
    """The systems to measure: the name and the process of each."""

    runners: Mapping[str, Runner]

    def homes(self) -> dict[Runner, list[str]]:
        """The systems that run in each process."""
        homes: dict[Runner, list[str]] = {}
        for system, runner in self.runners.items():
            homes.setdefault(runner, []).append(system)
        return homes


class Race(NamedTuple):
    """The results by system."""

    samples: dict[str, list[dict[str, Any]]]
    missing: dict[str, str]
    """The reason why a system has no result."""
    build_s: dict[str, float]

    def median(self, system: str, what: str) -> float | None:
        """Median over the samples, or ``None`` if there are no samples."""
        values = [sample[what] for sample in self.samples.get(system, [])]
        return median(values) if values else None


def race(
    field: Field,
    graph: Mapping[str, Any],
    requests: Mapping[str, Mapping[str, Any]],
    *,
    rounds: int,
) -> Race:
    """Build a graph everywhere, then ask the systems in turn, ``rounds`` times.

    Args:
        field: the systems.
        graph: ``size``, ``edges``, ``work``, ``seconds`` (see peers/serve.py).
        requests: the requests to each system in a round.
        rounds: maximum number of rounds. A slow system is stopped after a third of its time limit.
            If the limit is exceeded, the samples so far are used.
    """
    out = Race({}, {}, {})
    spent: dict[Runner, float] = {}

    def ask(runner: Runner, /, **request: Any) -> dict[str, Any]:
        runner.start()
        began = time.monotonic()
        try:
            return runner.ask(runner.patience - spent.get(runner, 0.0), **request)
        finally:
            spent[runner] = spent.get(runner, 0.0) + time.monotonic() - began

    entered = {}
    for runner, systems in field.homes().items():
        try:
            built = ask(runner, do="build", systems=systems, **graph)
        except NoResult as reason:
            out.missing.update(dict.fromkeys(systems, _over(reason, runner)))
            continue
        out.build_s.update(built["build_s"])
        entered.update(dict.fromkeys(systems, runner))
    for _ in range(rounds):
        for system, runner in list(entered.items()):
            if out.samples.get(system) and spent[runner] > runner.patience / 3:
                continue
            try:
                sample = ask(runner, system=system, **requests[system])
            except NoResult as reason:
                for other in [name for name, home in entered.items() if home is runner]:
                    del entered[other]
                    if other not in out.samples:
                        out.missing[other] = _over(reason, runner)
                break
            out.samples.setdefault(system, []).append(sample)
    return out


def _over(reason: NoResult, runner: Runner) -> str:
    said = str(reason)
    return f"no result in {runner.patience:g} s" if said.startswith("no result") else said


def progress() -> Progress:
    """A bar on stderr with the time left; silent where stderr is not a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


def import_cost(module: str, repeats: int) -> tuple[float, list[str]]:
    """Median CPU seconds of an import in a fresh process, and the packages that it imports.

    The interpreter's own start is not counted. The list holds the top-level names of all modules
    that are not of the standard library.
    """
    code = (
        "import sys, time; began = time.process_time(); import " + module + "; "
        "took = time.process_time() - began; import json; "
        "tops = {name.partition('.')[0] for name in list(sys.modules)}; "
        "tops = [t for t in tops if t not in sys.stdlib_module_names and t[0] != '_']; "
        "print(json.dumps([took, sorted(tops)]))"
    )
    seconds, tops = [], []
    for _ in range(repeats + 1):  # the first may have to compile
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        took, tops = json.loads(done.stdout)
        seconds.append(took)
    return median(seconds[1:]), tops
