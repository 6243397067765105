"""Reads long trace files without loading them: episodes and steps are decoded on access.

    with open_jsonl("runs/phone/traces/train-000.jsonl") as episodes:
        episode = episodes[7]                  # no step is decoded
        episode.success, len(episode.steps)
        episode.steps[9000].trace.action       # one step is decoded

The file is mapped into memory, not read into it: records that are not accessed are never kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, overload

import msgspec
from msgspec.structs import asdict

from swarm_ui.storage.mapped_lines import MappedLines
from swarm_ui.trace.jsonl import Anywhere, cannot_open, decoded, payload
from swarm_ui.trace.records import Episode, StepRecord, Trace

T_co = TypeVar("T_co", covariant=True)


class _Unread(Episode, frozen=True, kw_only=True):
    """An episode with its steps as they are stored in the file."""

    steps: tuple[msgspec.Raw, ...] = ()  # type: ignore[assignment]


_EPISODES = msgspec.json.Decoder(_Unread)
_STEPS = msgspec.json.Decoder(StepRecord)
_TRACES = msgspec.json.Decoder(Trace)


class Steps(Sequence[StepRecord]):
    """The steps of an episode in a file. Each is decoded at every access, and not cached."""

    __slots__ = ("_raw", "_where")

    def __init__(self, raw: tuple[msgspec.Raw, ...], where: str) -> None:
        self._raw, self._where = raw, where

    def __len__(self) -> int:
        return len(self._raw)

    @overload
    def __getitem__(self, index: int) -> StepRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[StepRecord]: ...
    def __getitem__(self, index: int | slice) -> StepRecord | list[StepRecord]:
        """One step, or a list of some. Raises ``TraceError`` if one is not a step."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self._raw)))]
        i = index + len(self._raw) if index < 0 else index
        step: StepRecord = decoded(_STEPS, self._raw[index], f"{self._where}, step {i}", StepRecord)
        return step

    def __repr__(self) -> str:
        return f"Steps({len(self._raw)}, {self._where})"


class OpenEpisode(Episode, frozen=True, kw_only=True, eq=False):
    """An :class:`~swarm_ui.trace.records.Episode` in a file, whose steps are read on access."""

    steps: Steps  # type: ignore[assignment]

    def load(self) -> Episode:
        """The episode with all its steps."""
        return Episode(**{**asdict(self), "steps": tuple(self.steps)})


class RecordFile(Sequence[T_co], Generic[T_co]):
    """The records of a file. Each is decoded at every access, and not cached.

    Lines are located when they are first needed. Lines that are appended after the file was opened
    are not seen; the file must not be truncated meanwhile. Use :func:`open_jsonl` to create one.
    """

    def __init__(
        self, path: Path, kind: type[Episode | Trace], read: Callable[[msgspec.Raw, str], T_co]
    ) -> None:
        self.path = path
        self._kind, self._read = kind, read
        try:
            self._lines = MappedLines(path)
        except OSError as error:
            raise cannot_open(path, error) from error

    def __len__(self) -> int:
        """Number of lines. A truncated line counts, but cannot be read."""
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> list[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | list[T_co]:
        """One record, or a list of some.

        Raises:
            TraceError: a line is truncated, of another version, or not such a record.
            ValueError: the file was closed.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = index + len(self) if index < 0 else index
        try:
            line = self._lines[i]
        except IndexError:
            raise IndexError(
                f"{self.path} has {len(self)} lines; there is no record {index}"
            ) from None
        where = f"{self.path}, line {i + 1}"
        return self._read(payload(line, self._kind, where), where)

    def close(self) -> None:
        """Close the file. Episodes and steps that were already read stay valid."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"RecordFile('{self.path}', {self._kind.__name__})"


@overload
def open_jsonl(path: Anywhere) -> RecordFile[OpenEpisode]: ...
@overload
def open_jsonl(path: Anywhere, kind: type[Episode]) -> RecordFile[OpenEpisode]: ...
@overload
def open_jsonl(path: Anywhere, kind: type[Trace]) -> RecordFile[Trace]: ...
def open_jsonl(path: Anywhere, kind: type[Any] = Episode) -> RecordFile[Any]:
    """Open a file of episodes (or traces) as a read-only sequence; nothing is decoded yet.

    Args:
        path: a file that :func:`swarm_ui.trace.jsonl.write_jsonl` wrote.
        kind: ``Episode`` or ``Trace``, as the file was written.

    Raises:
        TraceError: it cannot be opened. Invalid lines raise on access.
    """
    return RecordFile(Path(path), kind, _episode if kind is Episode else _trace)


def _episode(raw: msgspec.Raw, where: str) -> OpenEpisode:
    unread = decoded(_EPISODES, raw, where, Episode)
    return OpenEpisode(**{**asdict(unread), "steps": Steps(unread.steps, where)})


def _trace(raw: msgspec.Raw, where: str) -> Trace:
    return decoded(_TRACES, raw, where, Trace)
