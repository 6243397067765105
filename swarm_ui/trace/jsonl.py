"""Traces on disk: JSON lines, one episode or one decision per line, with a version.

The format, for readers in other languages, is on the page ``docs/trace_format.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, TraceError, brief
from swarm_ui.files import LineFile, replacing
from swarm_ui.trace.records import TRACE_VERSION, Episode, Trace

Record = TypeVar("Record", Episode, Trace)
Anywhere = str | os.PathLike[str]
Numbered = tuple[int, Episode]
"""An episode and the number of its job."""

_NOTHING = msgspec.Raw()
_WHAT: dict[type[Any], str] = {Episode: "an episode", Trace: "a trace"}


class _Line(msgspec.Struct, frozen=True, gc=False):
    version: int | None = None
    episode: msgspec.Raw = _NOTHING
    trace: msgspec.Raw = _NOTHING


_LINES = msgspec.json.Decoder(_Line)


def write_jsonl(path: Anywhere, records: Iterable[Episode | Trace]) -> None:
    """Write or replace a file. Atomic: after a crash it is either the complete old or new file.
    Raises ``TraceError`` if a record has a text that JSON cannot represent."""
    target = Path(path)
    with replacing(target) as file:
        for number, record in enumerate(records, start=1):
            file.write(_line(record, target, number) + b"\n")


def append_jsonl(path: Anywhere, records: Iterable[Episode | Trace]) -> None:
    """Add records to a file, which is created if missing. They are on disk when this returns.

    Raises ``TraceError`` if the file's last line has no end, as after a crash or in a file of
    another kind, or a record has a text that JSON cannot represent; the file is as before.
    """
    target = Path(path)
    lines = [_line(record, target, n) for n, record in enumerate(records, start=1)]
    with FileIO(target, "a+") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                raise TraceError(
                    f"{target}: the last line has no end, so nothing is added; remove that line, "
                    "or give another file"
                )
        LineFile(file).append(*lines)


@overload
def iter_jsonl(path: Anywhere, *, whole: bool = True) -> Iterator[Episode]: ...
@overload
def iter_jsonl(path: Anywhere, kind: type[Record], *, whole: bool = True) -> Iterator[Record]: ...
def iter_jsonl(path: Anywhere, kind: type[Any] = Episode, *, whole: bool = True) -> Iterator[Any]:
    """Records of a file one by one, without loading it whole. Raises ``TraceError`` for a line that
    is truncated, of another version, or not such a record.

    ``whole``: a truncated last line is an error. If not, it is left out: a run that was killed, or
    that still writes, leaves one.
    """
    decoder = msgspec.json.Decoder(kind)
    source = Path(path)
    try:
        file = source.open("rb")
    except OSError as error:
        raise _cannot_open(source, error) from error
    with file:
        for number, line in enumerate(file, start=1):
            if not whole and not line.endswith(b"\n"):
                return
            where = f"{source}, line {number}"
            yield _decoded(decoder, line, kind, where)


@overload
def read_jsonl(path: Anywhere) -> list[Episode]: ...
@overload
def read_jsonl(path: Anywhere, kind: type[Record]) -> list[Record]: ...
def read_jsonl(path: Anywhere, kind: type[Any] = Episode) -> list[Any]:
    """All records of a file; see :func:`iter_jsonl`."""
    return list(iter_jsonl(path, kind))


def holds_decisions(path: Anywhere) -> bool:
    """Whether the first line of a file is a single decision (``Trace``), and not an episode."""
    source = Path(path)
    try:
        with source.open("rb") as file:
            return bool(_LINES.decode(file.readline()).trace)
    except OSError as error:
        raise _cannot_open(source, error) from error
    except UNREADABLE:
        return False  # reading it says what is wrong


async def write_stream(
    path: Path, stream: AsyncGenerator[Numbered, None]
) -> AsyncGenerator[Numbered, None]:
    """Append the episodes of a stream to a trace file; yields each one when it is on disk.

    It is written in a thread, so that neither the event loop nor the workers wait for the disk. An
    episode that was read from the stream is written also if the caller is cancelled. Raises
    ``ConfigError`` if the disk is full or fails, and what the stream raises.

    Args:
        path: made if missing. Only this call may write to it.
        stream: the result of :meth:`swarm_ui.rollout.Rollouts.stream`; it is closed at the end.
    """
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as disk:  # at its end, it waits for what is being written
        async with aclosing(stream) as episodes:
            async for numbered in episodes:
                writing = loop.run_in_executor(disk, append_jsonl, path, [numbered[1]])
                try:
                    await asyncio.shield(writing)
                except OSError as error:
                    raise ConfigError(
                        f"cannot write '{path}': {error.strerror or error}. The episodes that were "
                        "counted before are kept: make room, or repair the disk, and go on"
                    ) from error
                yield numbered


def _decoded(
    decoder: msgspec.json.Decoder[Record], line: bytes, kind: type[Record], where: str
) -> Record:
    if line[-1:] != b"\n":
        raise TraceError(f"{where}: cut off after {len(line)} bytes; read it with whole=False")
    try:
        found = _LINES.decode(line)
        if found.version != TRACE_VERSION:
            raise TraceError(
                f"{where}: version {found.version}; this release reads version {TRACE_VERSION}"
            )
        raw, otherwise = found.episode, found.trace
        if kind is Trace:
            raw, otherwise = otherwise, raw
        if raw:
            return decoder.decode(raw)
    except UNREADABLE as error:
        raise TraceError(f"{where}: not {_WHAT[kind]}: {brief(error)}") from error
    other: type[Any] = Trace if kind is Episode else Episode
    hint = f" but {_WHAT[other]}; read the file with kind={other.__name__}" if otherwise else ""
    raise TraceError(f"{where}: not {_WHAT[kind]}{hint}")


def _cannot_open(path: Path, error: OSError) -> TraceError:
    return TraceError(f"{path}: cannot be opened: {error.strerror}")


def _line(record: Episode | Trace, target: Path, number: int) -> bytes:
    name = type(record).__name__.lower()
    if isinstance(record, Episode) and record.notes:
        record = msgspec.structs.replace(record, notes=())
    try:
        body = msgspec.json.encode(record)
    except UnicodeEncodeError as error:
        raise TraceError(
            f"{target}: {name} {number} cannot be written: a text has half a character "
            f"({error.object[max(0, error.start - 20) : error.start + 20]!r}); replace it"
        ) from error
    return b'{"version":%d,"%s":%s}' % (TRACE_VERSION, name.encode(), body)
