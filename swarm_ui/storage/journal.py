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
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, TraceError, brief
from swarm_ui.files import LineFile, claim
from swarm_ui.json_text import encodable
from swarm_ui.message import Question
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Call


class Head(msgspec.Struct, frozen=True, kw_only=True, tag="run", tag_field="line"):
    """The beginning of a run: what two runs of the same name must share to be the same run."""

    run: str
    seed: int
    graph: str
    """The graph's structure as JSON."""
    observation: Observation


class _Said(msgspec.Struct, frozen=True, tag="call", tag_field="line", omit_defaults=True):
    run: str
    call: Call
    inside: tuple[str, ...] = ()
    """Ids of the calls inside this one, in the order of the trace; they were written before."""


class _Asked(msgspec.Struct, frozen=True, tag="question", tag_field="line"):
    run: str
    question: Question


class _Finished(msgspec.Struct, frozen=True, tag="finished", tag_field="line"):
    run: str


_Line = Head | _Said | _Asked | _Finished
_BEGIN = b'{"line":'
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


class RunRecord:
    """A run in a journal."""

    def __init__(self, head: Head) -> None:
        self.head = head
        #: each call, by message id, in the order they were written; those inside another call in
        #: the order of the trace
        self.calls: dict[str, Call] = {}
        #: questions that wait for a person's answer, by message id
        self.questions: dict[str, Question] = {}
        self.finished = False

    def _add(self, line: _Said | _Asked | _Finished) -> None:
        self.finished = isinstance(line, _Finished)
        if isinstance(line, _Said):
            id = line.call.id
            for each in line.inside:
                if each in self.calls:
                    self.calls[each] = self.calls.pop(each)
            self.calls.pop(id, None)  # so that the order is that of the last write
            self.calls[id] = line.call
            self.questions.pop(id, None)
        elif isinstance(line, _Asked):
            self.questions[line.question.id] = line.question


class Journal:
    """A file of runs. It is open only while a run uses it, and then locked for this process.

    Any number of runs may use one object at the same time. The lock needs ``flock``: there is none
    on Windows and on some network file systems.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = False) -> None:
        """
        Args:
            path: the file; it is created by the first run.
            fsync: wait for the disk after each call, so that calls survive a power cut too. That
                adds about a millisecond to a call.
        """
        self.path, self._fsync = Path(path), fsync
        self._lock = threading.RLock()
        self._runs: dict[str, RunRecord] = {}
        self._read = self._lines = 0  # bytes and lines of the file that are in `_runs`
        self._using: set[str] = set()
        self._file: LineFile | None = None

    def runs(self) -> list[RunRecord]:
        """All runs, the oldest first; also while they are running.

        Raises:
            ConfigError: there is no such file.
            TraceError: the file is damaged.
        """
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
        """Begin or continue a run; returns its calls so far.

        Raises:
            ConfigError: the run was started with another graph, seed or screen, is open already, or
                the file cannot be written.
            TraceError: the file is damaged.
        """
        if not head.run:
            raise ConfigError("a run that is kept in a journal needs a unique name: run_id='...'")
        with self._lock:
            if head.run in self._using:
                raise self._taken(head.run)
            if self._file is None:
                self._claim(head.run)
            self._using.add(head.run)
            try:
                if head.run not in self._runs:
                    self._append(head)
                    self._runs[head.run] = RunRecord(head)
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

    def write(self, run: str, call: Call, inside: tuple[str, ...] = ()) -> None:
        """Write a call. Raises ``ConfigError`` if that is not possible.

        ``inside``: ids of the calls inside it, in the order of the trace.
        """
        self._add(_Said(run, call, inside))

    def ask(self, run: str, question: Question) -> None:
        """Write that a call waits for a person."""
        if self._runs[run].questions.get(question.id) != question:
            self._add(_Asked(run, question))

    def finish(self, run: str) -> None:
        """Write that a run has finished."""
        if not self._runs[run].finished:
            self._add(_Finished(run))

    def close(self, run: str) -> None:
        """End the use of the file by a run; the last one closes and unlocks it."""
        with self._lock:
            self._using.discard(run)
            if not self._using and self._file is not None:
                self._file.close()
                self._file = None

    def _claim(self, run: str) -> None:
        file = None
        try:
            file = claim(self.path)
            if file is None:
                raise self._taken(run)
            self._load(file)
            self._file = LineFile(file, fsync=self._fsync)
        except BaseException as error:  # re-raised: the file is not left locked
            if file is not None:
                file.close()
            if isinstance(error, OSError):
                raise self._unusable(error) from error
            raise

    def _load(self, file: FileIO) -> None:
        """Read the whole lines that were not read before."""
        if os.fstat(file.fileno()).st_size < self._read:  # another file
            self._runs, self._read, self._lines = {}, 0, 0
        file.seek(self._read)
        data = file.readall()
        if not self._read and not (data.startswith(_BEGIN) or _BEGIN.startswith(data)):
            raise TraceError(f"{self.path}: not a journal of runs; give the name of another file")
        lines = data.split(b"\n")[:-1]
        for line in lines:
            try:
                found = _decode(line)
                if isinstance(found, Head):
                    self._runs[found.run] = RunRecord(found)
                else:
                    self._runs[found.run]._add(found)
            except (*UNREADABLE, KeyError) as error:
                raise TraceError(
                    f"{self.path}, line {self._lines + 1}: not a line of a journal: "
                    f"{brief(error)}. Remove it and all later lines, and their calls are made "
                    "again; or delete the file"
                ) from error
            self._read += len(line) + 1
            self._lines += 1

    def _add(self, line: _Said | _Asked | _Finished) -> None:
        with self._lock:
            self._append(line)
            self._runs[line.run]._add(line)

    def _append(self, line: _Line) -> None:
        assert self._file is not None
        try:
            data = _encode(line)
        except UnicodeEncodeError:  # half a character in the reply of a model
            data = _encode(_whole(msgspec.to_builtins(line)))
        except (TypeError, ValueError, OverflowError) as error:
            raise ConfigError(f"a call of '{line.run}' cannot be kept: {error}") from error
        try:
            self._file.append(data)
        except OSError as error:
            raise self._unusable(error) from error
        self._read += len(data) + 1
        self._lines += 1

    def _taken(self, run: str) -> ConfigError:
        return ConfigError(
            f"the run {run!r} cannot use {self.path}: it is open, here or in another process; "
            "wait until that is over, or use another file (a killed process holds no lock)"
        )

    def _unusable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"{self.path} cannot be used: {error}. What was written before is safe. Correct the "
            "problem, then start the run again under the same name: it continues from there"
        )


def _whole(value: Any) -> Any:
    """A value in which no text has half a character."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value
