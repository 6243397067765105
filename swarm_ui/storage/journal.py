"""Runs of graphs on disk: one file of JSON lines, to which every finished call is appended.

    trace = await team.run(screen, run_id="tuesday/7", journal=Journal("runs.jsonl"))

A call is written as a whole line when it has finished, and its successors start only after that.
What was written survives ``kill -9``. A run that is started again under its name reuses the written
calls unchanged and makes the others. The caller must provide the same nodes, models and prompts
again; only names, edges, seed and screen are compared.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, TraceError, brief
from swarm_ui.files import LineFile, claim
from swarm_ui.message import Question
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Call


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a run: what two runs of the same name must share to be the same run."""

    run: str
    seed: int
    graph: str
    """The graph's structure as JSON."""
    observation: Observation


class _Line(
    msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True
):
    """A line of the file: a run, and one thing that happened in it."""

    run: str
    head: Head | None = None
    call: Call | None = None
    inside: tuple[str, ...] = ()
    """Ids of the calls inside this one, in the order of the trace; they were written before."""
    question: Question | None = None
    finished: bool = False


_BEGIN = b'{"run":'
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


@dataclass
class RunRecord:
    """A run in a journal."""

    head: Head
    calls: dict[str, Call] = field(default_factory=dict)
    """Each call, by message id, in the order they were written; those inside another call in the
    order of the trace."""
    questions: dict[str, Question] = field(default_factory=dict)
    """Questions that wait for a person's answer, by message id."""
    finished: bool = False


class Journal:
    """A file of runs. It is open only while a run uses it, and then locked for this process.

    Any number of runs may use one object at the same time. The lock needs ``flock``: there is none
    on Windows and on some network file systems.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """``path``: the file; it is created by the first run."""
        self.path = Path(path)
        self._lock = threading.RLock()
        self._runs: dict[str, RunRecord] = {}
        self._read = self._lines = 0  # bytes and lines of the file that are in `_runs`
        self._using: set[str] = set()
        self._file: LineFile | None = None

    def runs(self) -> list[RunRecord]:
        """All runs, the oldest first; also while they are running. Raises ``ConfigError`` if there
        is no such file, ``TraceError`` if it is damaged."""
        with self._lock:
            if self._file is None:
                try:
                    with FileIO(self.path) as file:
                        self._load(file)
                except OSError as error:
                    raise ConfigError(f"there is no journal {self.path}: {error}") from error
            return list(self._runs.values())

    def read(self, run: str) -> RunRecord:
        """One run. Raises ``ConfigError`` if there is none of that name, and as :meth:`runs`."""
        self.runs()
        if run not in self._runs:
            raise ConfigError(f"there is no run {run!r} in {self.path}; runs() lists what there is")
        return self._runs[run]

    # -- for the engine -----------------------------------------------------------------------

    def open(self, head: Head) -> dict[str, Call]:
        """Begin or continue a run; returns its calls so far. Raises ``ConfigError`` if it was begun
        with another graph, seed or screen, is open already, or the file cannot be written."""
        if not head.run:
            raise ConfigError("a run that is kept in a journal needs a unique name: run_id='...'")
        with self._lock:
            if head.run in self._using or not (self._file or self._claimed()):
                raise ConfigError(
                    f"the run {head.run!r} cannot use {self.path}: it is open, here or in another "
                    "process; wait until that is over, or use another file (a killed process holds "
                    "no lock)"
                )
            self._using.add(head.run)
            try:
                if head.run not in self._runs:
                    self._write(_Line(run=head.run, head=head))
                record = self._runs[head.run]
                for name in ("seed", "graph", "observation"):
                    if _encode(getattr(record.head, name)) != _encode(getattr(head, name)):
                        raise ConfigError(
                            f"the run {head.run!r} in {self.path} was started with another "
                            f"{name.replace('observation', 'screen')}. Use the original arguments, "
                            "or choose another name"
                        )
            except BaseException:  # re-raised: whatever is wrong, the file is not left locked
                self.close(head.run)
                raise
            return dict(record.calls)

    def write(self, run: str, what: Call | Question | None, inside: tuple[str, ...] = ()) -> None:
        """Write a call, a question that waits for a person, or, with ``None``, that the run has
        finished, unless it is there. Raises ``ConfigError`` if that is not possible.

        ``inside``: ids of the calls inside a call, in the order of the trace.
        """
        record = self._runs[run]
        if isinstance(what, Call):
            if record.calls.get(what.id) is not what:
                self._write(_Line(run=run, call=what, inside=inside))
        elif what is None and not record.finished:
            self._write(_Line(run=run, finished=True))
        elif what is not None and record.questions.get(what.id) != what:
            self._write(_Line(run=run, question=what))

    def close(self, run: str) -> None:
        """End the use of the file by a run; the last one closes and unlocks it."""
        with self._lock:
            self._using.discard(run)
            if not self._using and self._file is not None:
                self._file.close()
                self._file = None

    def _claimed(self) -> bool:
        """Lock, read and open the file; false if another process holds it."""
        try:
            file = claim(self.path)
            if file is None:
                return False
            try:
                self._load(file)
                self._file = LineFile(file, fsync=False)
            except BaseException:  # re-raised: the file is not left locked
                file.close()
                raise
        except OSError as error:
            raise self._unusable(error) from error
        return True

    def _load(self, file: FileIO) -> None:
        """Read the whole lines that were not read before."""
        if os.fstat(file.fileno()).st_size < self._read:  # another file
            self._runs, self._read, self._lines = {}, 0, 0
        file.seek(self._read)
        data = file.readall()
        if not self._read and not (data.startswith(_BEGIN) or _BEGIN.startswith(data)):
            raise TraceError(f"{self.path}: not a journal of runs; give the name of another file")
        for line in data.split(b"\n")[:-1]:
            try:
                self._keep(_decode(line), len(line))
            except (*UNREADABLE, KeyError) as error:
                raise TraceError(
                    f"{self.path}, line {self._lines + 1}: not a line of a journal: "
                    f"{brief(error)}. Remove it and all later lines, and their calls are made "
                    "again; or delete the file"
                ) from error

    def _keep(self, line: _Line, size: int) -> None:
        if line.head is not None:
            self._runs[line.run] = RunRecord(line.head)
        record = self._runs[line.run]
        record.finished = line.finished
        if line.question is not None:
            record.questions[line.question.id] = line.question
        if line.call is not None:
            record.questions.pop(line.call.id, None)
            # Put last, so that the order is that of the last write.
            inside = {id: record.calls.pop(id) for id in line.inside if id in record.calls}
            record.calls.pop(line.call.id, None)
            record.calls |= {**inside, line.call.id: line.call}
        self._read += size + 1
        self._lines += 1

    def _write(self, line: _Line) -> None:
        with self._lock:
            assert self._file is not None
            try:
                data = _encode(line)
            except (TypeError, ValueError, OverflowError) as error:
                raise ConfigError(f"a call of '{line.run}' cannot be kept: {error}") from error
            try:
                self._file.append(data)
            except OSError as error:
                raise self._unusable(error) from error
            self._keep(line, len(data))

    def _unusable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"{self.path} cannot be used: {error}. What was written before is safe. Correct the "
            "problem, then start the run again under the same name: it continues from there"
        )
