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
        foreign = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV") if python != sys.executable else ()
        self._environment = {k: v for k, v in os.environ.items() if k not in foreign}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

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
            with Path(self._folder.name, "stderr.txt").open("ab") as errors:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                    cwd=self._folder.name, env=self._environment,
                )  # fmt: skip
            self.facts = self._line(self._process, 120)  # imports take their time
        return self._process

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        """The next line of its answers, of which there is one for each request."""
        assert process.stdout is not None and self._folder is not None
        if not select.select([process.stdout], [], [], max(0.0, seconds))[0]:
            self.stop()
            raise NoResult(f"no result in {self.patience:g} s")
        line = process.stdout.readline()
        if not line:
            code = process.wait()
            said = Path(self._folder.name, "stderr.txt").read_text(errors="replace").strip()
            self.stop()
            raise NoResult(f"its process ended with {code}: {said[-300:]}")
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
    runs: Mapping[str, int],
    *,
    rounds: int,
) -> Race:
    """Build a graph in all systems, then time them in turn, so that other load affects all equally.

    Args:
        runners: the process of each system; several systems may share one.
        graph: ``size``, ``edges``, ``work``, ``seconds`` (see peers/serve.py).
        runs: runs of each system in a round.
        rounds: at most so many. A slow system is left out after a third of its time limit. If the
            limit is exceeded, the samples so far are used.
    """
    out, spent = Race({}, {}, {}), dict.fromkeys(runners.values(), 0.0)

    def ask(runner: Runner, /, **request: Any) -> dict[str, Any] | None:
        """The answer; without one, the systems of this process, which is lost, are left out."""
        began = time.monotonic()
        try:
            runner.start()
            return runner.ask(runner.patience - spent[runner], **request)
        except NoResult as reason:
            for name, other in runners.items():
                if other is runner and name in left:
                    left.remove(name)
                    if name not in out.samples:
                        out.missing[name] = str(reason)
            return None
        finally:
            spent[runner] += time.monotonic() - began

    left = list(runners)
    for runner in spent:
        shared = [name for name, other in runners.items() if other is runner]
        built = ask(runner, do="build", systems=shared, **graph)
        out.build_s.update(built["build_s"] if built else {})
    for _ in range(rounds):
        for system in list(left):
            runner = runners[system]
            slow = system in out.samples and spent[runner] > runner.patience / 3
            if system not in left or slow:
                continue
            sample = ask(runner, do="time", system=system, runs=runs[system])
            if sample is not None:
                out.samples.setdefault(system, []).append(sample)
    return out
