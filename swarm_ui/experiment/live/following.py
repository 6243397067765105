"""Follows the files of a run, reading only what is new."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from swarm_ui.errors import FailureKind, SwarmError, brief
from swarm_ui.experiment.demo.arm_settings import is_of_a_demo
from swarm_ui.experiment.live.progress_file import Written, read_progress
from swarm_ui.experiment.stored.run_status import RunState, state_of
from swarm_ui.experiment.stored.summary import environment_name
from swarm_ui.report.contents import Curve
from swarm_ui.report.run_reader import learning_curves
from swarm_ui.report.totals import set_name
from swarm_ui.rollout import Job
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.failures import FailureClass, failure_class
from swarm_ui.trace.jsonl import decode_line
from swarm_ui.trace.records import Episode

T = TypeVar("T")

NEWEST = 12
"""Number of episodes that are listed."""
_TRAINING = "train"
"""Name of the set of training episodes, and of a split of some environments."""
_MOST_FAULTS = 8
_MOST_BYTES = 32_000_000
"""Maximum number of bytes read from one file in one poll."""
_EPISODES = msgspec.json.Decoder(Episode)


class Seen(msgspec.Struct, frozen=True, gc=False):
    """The fields of an episode that the page lists."""

    trace: str
    """Name of the file, without its suffix."""
    number: int
    """Line number of the episode in the file, from 0."""
    task: str
    seed: int
    goal: str
    policy: str
    steps: int
    success: bool | None
    why: FailureClass | None
    fault: str
    kind: FailureKind | None
    """Kind of the fault; ``None``: there was none."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of a run."""

    name: str
    command: str
    environment: str
    state: RunState
    error: str
    progress: Written | None
    curves: tuple[Curve, ...]
    outcomes: dict[str, tuple[bool | None, ...]]
    """Outcomes of the recorded episodes by set, in the order of recording."""
    jobs: dict[str, tuple[Job, ...]]
    """Task and seed of each recorded episode, in the order of ``outcomes``."""
    failures: dict[FailureClass, int]
    newest: tuple[Seen, ...]
    """The episodes that the page lists, the newest first."""
    faults: tuple[tuple[str, int], ...]
    """The different faults and how often each occurred, the most frequent first."""
    fault_kinds: dict[FailureKind, int]
    problems: tuple[str, ...]
    """Descriptions of the files that could not be read."""

    @property
    def evaluates(self) -> bool:
        """Whether the run plays chosen episodes, all of which it keeps."""
        return self.command in ("run", "eval")

    def is_selection(self, name: str) -> bool:
        """Whether a set has no success rate: of its training a run keeps only a selection."""
        return name == _TRAINING and not self.evaluates


class _Tail:
    """The complete lines of a file that grows, or that is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: list[Seen] = []
        self.problem = ""
        self._inode = self._offset = self._lines = 0
        self.behind = False
        """Whether the file may hold more than was read so far."""
        self.changed = 0
        """Time of the last change, ns."""

    def look(self) -> None:
        """Read what is new. Raises ``OSError`` if the file cannot be read."""
        self.behind = False
        with self.path.open("rb") as file:
            status = os.fstat(file.fileno())  # not of the file that may replace this one now
            if status.st_ino != self._inode or status.st_size < self._offset:
                self.seen, self.problem = [], ""
                self._inode, self._offset, self._lines = status.st_ino, 0, 0
            self.changed = status.st_mtime_ns
            if self.problem:
                return
            file.seek(self._offset)
            data = file.read(_MOST_BYTES)
        end = data.rfind(b"\n") + 1
        if not end and len(data) == _MOST_BYTES:
            self.problem = f"{self.path.name}: a line has more than {_MOST_BYTES:,} bytes"
        for line in data[:end].splitlines(keepends=True):
            if self.problem:
                break
            self._read(line)
        self._offset += end
        self.behind = not self.problem and len(data) == _MOST_BYTES

    def _read(self, line: bytes) -> None:
        where = f"{self.path.name}, line {self._lines + 1}"
        try:
            episode = decode_line(_EPISODES, line, Episode, where)
        except (SwarmError, ValueError, RecursionError) as error:
            self.problem = f"{where} and those after it: {brief(error)}"
            return
        first = episode.steps[0].trace.observation if episode.steps else None
        self.seen.append(
            Seen(
                self.path.stem, self._lines, episode.task, episode.seed,
                first.goal if first else "", episode.policy, len(episode.steps), episode.success,
                failure_class(episode), "" if episode.fault is None else str(episode.fault),
                None if episode.fault is None else episode.fault.kind,
            )
        )  # fmt: skip
        self._lines += 1


class RunFollower:
    """Polls a run. It changes nothing in the folder of the run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run = RunDirectory(path)
        self._tails: dict[str, _Tail] = {}
        self._curves: tuple[tuple[int, int], tuple[Curve, ...]] = ((0, 0), ())

    @property
    def traces(self) -> dict[str, Path]:
        """The trace files of the run, by name."""
        folder = self.path / "traces"
        return {path.stem: path for path in sorted(folder.glob("*.jsonl")) if path.is_file()}

    @property
    def behind(self) -> bool:
        """Whether a file is so large that only the next :meth:`look` reads the rest of its present
        contents."""
        return any(tail.behind for tail in self._tails.values())

    def look(self) -> Look:
        """The current state of the run. Unreadable files are listed under ``problems``."""
        problems: list[str] = []
        files = self.traces
        for name in self._tails.keys() - files.keys():
            del self._tails[name]
        for name, path in files.items():
            tail = self._tails.setdefault(name, _Tail(path))
            try:
                tail.look()
            except OSError as error:
                problems.append(f"{path.name}: {error.strerror}")
        tails = sorted(self._tails.values(), key=lambda tail: (tail.changed, tail.path.name))
        seen = [episode for tail in tails for episode in tail.seen]
        state, ending = state_of(self._run)
        settings = self._settings()
        command = str(settings.get("command") or settings.get("script") or "")
        command = command or ("demo" if is_of_a_demo(settings) else "")
        return Look(
            name=self.path.resolve().name,
            command=command,
            environment=environment_name(settings),
            state=state,
            error=ending,
            progress=read_progress(self.path),
            curves=self._measured(),
            outcomes=_by_set((e, e.success) for e in seen),
            jobs=_by_set((e, (e.task, e.seed)) for e in seen),
            failures=dict(Counter(e.why for e in seen if e.why is not None)),
            newest=tuple(reversed(seen[-NEWEST:])),
            faults=tuple(Counter(e.fault for e in seen if e.fault).most_common(_MOST_FAULTS)),
            fault_kinds=dict(Counter(e.kind for e in seen if e.kind is not None)),
            problems=(*problems, *(tail.problem for tail in tails if tail.problem)),
        )

    def _settings(self) -> dict[str, object]:
        try:
            return self._run.config()
        except SwarmError:  # told as the state of the run
            return {}

    def _measured(self) -> tuple[Curve, ...]:
        """The learning curves, read again if the measurements have changed."""
        try:
            status = (self.path / "metrics.jsonl").stat()
        except OSError:
            return ()
        key = (status.st_mtime_ns, status.st_size)
        if self._curves[0] != key:
            self._curves = (key, learning_curves(self.path))
        return self._curves[1]


def _by_set(values: Iterable[tuple[Seen, T]]) -> dict[str, tuple[T, ...]]:
    found: dict[str, list[T]] = {}
    for episode, value in values:
        found.setdefault(set_name(episode.trace), []).append(value)
    return {name: tuple(each) for name, each in found.items()}
