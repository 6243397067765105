"""Interleaved measurements of systems, each in a process of its own."""

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


class NoResult(Exception):
    """A system did not answer, because of an error or a time-out."""


class Runner:
    """The process of a system (``peers/run_*.py``). It starts at the first request, and again
    after a time-out."""

    def __init__(self, python: str, script: Path, patience: float) -> None:
        """
        Args:
            python, script: the interpreter and the script to start. Another interpreter than this
                one has an environment of its own.
            patience: time limit in seconds for one graph, from building it to its last sample.
        """
        self.patience = patience
        self.facts: dict[str, str] = {}
        self._command = [python, str(script)]
        self._environment = dict(os.environ)
        if python != sys.executable:
            for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"):
                self._environment.pop(name, None)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""

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
        if self._process is None:
            self._folder = tempfile.TemporaryDirectory(prefix="bench-")  # peers write logs into it
            with self._errors.open("ab") as errors:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                    cwd=self._folder.name, env=self._environment,
                )  # fmt: skip
            self._read = b""
            self.facts = self._line(self._process, 120)  # imports take their time
        return self._process

    @property
    def _errors(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "stderr.txt"

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        assert process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self.stop()
                raise NoResult(f"no result in {self.patience:g} s")
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                code, said = process.wait(), self._errors.read_text(errors="replace")
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
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class Race(NamedTuple):
    """The results by system."""

    samples: dict[str, list[dict[str, Any]]]
    missing: dict[str, str]
    """The reason why a system has no result."""
    build_s: dict[str, float]

    def median(self, system: str, what: str) -> float | None:
        """Median over the samples, or ``None`` if there are none."""
        values = [sample[what] for sample in self.samples.get(system, [])]
        return median(values) if values else None


def race(
    runners: Mapping[str, Runner],
    graph: Mapping[str, Any],
    requests: Mapping[str, Mapping[str, Any]],
    *,
    rounds: int,
) -> Race:
    """Build a graph in all systems, then ask them in turn, so that other load affects all equally.

    Args:
        runners: the process of each system; several systems may share one.
        graph: ``size``, ``edges``, ``work``, ``seconds`` (see peers/serve.py).
        requests: the request to each system in a round.
        rounds: at most so many. A slow system is left out after a third of its time limit. If the
            limit is exceeded, the samples so far are used.
    """
    out, spent = Race({}, {}, {}), dict.fromkeys(runners.values(), 0.0)

    def ask(name: str, /, **request: Any) -> dict[str, Any]:
        runner = runners[name]
        runner.start()
        began = time.monotonic()
        try:
            return runner.ask(runner.patience - spent[runner], **request)
        finally:
            spent[runner] += time.monotonic() - began

    for system, runner in runners.items():
        shared = [name for name, other in runners.items() if other is runner]
        if system != shared[0]:
            continue
        try:
            out.build_s.update(ask(system, do="build", systems=shared, **graph)["build_s"])
        except NoResult as reason:
            out.missing.update(dict.fromkeys(shared, str(reason)))
    left = [system for system in runners if system not in out.missing]
    for _ in range(rounds):
        for system in list(left):
            runner = runners[system]
            if system not in left or (out.samples.get(system) and
                                      spent[runner] > runner.patience / 3):  # fmt: skip
                continue
            try:
                sample = ask(system, system=system, **requests[system])
            except NoResult as reason:  # the process has to be built again
                lost = [name for name in left if runners[name] is runner]
                left = [name for name in left if name not in lost]
                out.missing.update({s: str(reason) for s in lost if s not in out.samples})
                continue
            out.samples.setdefault(system, []).append(sample)
    return out


def import_cost(module: str, repeats: int) -> tuple[float, list[str]]:
    """Median CPU seconds of an import in a fresh process, and the packages that it imports.

    The interpreter's own start is not counted, nor are modules of the standard library.
    """
    code = (
        f"import sys, time; began = time.process_time(); import {module}; "
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
