"""Episodes on disk: one JSON line each, with a version; equal episodes give equal bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from swarm_ui.errors import TraceError
from swarm_ui.trace import TRACE_VERSION, Episode


class _Head(msgspec.Struct):
    version: int | None = None


class _Line(msgspec.Struct, frozen=True):
    version: int
    episode: Episode


def write_jsonl(path: str | os.PathLike[str], episodes: Iterable[Episode]) -> None:
    """Write a file anew. Atomic: after a crash there is the old file or the new one, whole."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            for episode in episodes:
                file.write(_line(episode))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def append_jsonl(path: str | os.PathLike[str], episodes: Iterable[Episode]) -> None:
    """Add episodes to a file (made if missing), safely on disk on return.

    Raises:
        TraceError: the file's last line was cut off, as by a crash; see :func:`repair_jsonl`.
    """
    target = Path(path)
    data = b"".join([_line(episode) for episode in episodes])
    with target.open("a+b") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                raise TraceError(
                    f"{target}: the last line is cut off; drop it with repair_jsonl() first"
                )
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def iter_jsonl(path: str | os.PathLike[str]) -> Iterator[Episode]:
    """Episodes of a file one by one, without loading it whole.

    Raises:
        TraceError: a line is cut off, of another version or not an episode; says which.
    """
    decoder = msgspec.json.Decoder(_Line)
    head = msgspec.json.Decoder(_Head)
    source = Path(path)
    try:
        file = source.open("rb")
    except OSError as error:
        raise TraceError(f"{source}: cannot be opened: {error.strerror}") from error
    with file:
        for number, line in enumerate(file, start=1):
            where = f"{source}, line {number}"
            if not line.endswith(b"\n"):
                raise TraceError(
                    f"{where}: cut off after {len(line)} bytes; repair_jsonl() drops it"
                )
            try:
                version = head.decode(line).version
                if version != TRACE_VERSION:
                    raise TraceError(
                        f"{where}: version {version}; this release reads version {TRACE_VERSION}"
                    )
                episode = decoder.decode(line).episode
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise TraceError(f"{where}: not an episode: {error}") from error
            yield episode


def read_jsonl(path: str | os.PathLike[str]) -> list[Episode]:
    """All episodes of a file; see :func:`iter_jsonl`."""
    return list(iter_jsonl(path))


def repair_jsonl(path: str | os.PathLike[str]) -> int:
    """Drop a last line that was cut off; returns how many bytes went."""
    with Path(path).open("r+b") as file:
        whole = size = file.seek(0, os.SEEK_END)
        while whole > 0:
            start = max(0, whole - 65536)
            file.seek(start)
            found = file.read(whole - start).rfind(b"\n")
            if found >= 0:
                whole = start + found + 1
                break
            whole = start
        file.truncate(whole)
        os.fsync(file.fileno())
    return size - whole


def _line(episode: Episode) -> bytes:
    return msgspec.json.encode(_Line(TRACE_VERSION, episode)) + b"\n"


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself last, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
