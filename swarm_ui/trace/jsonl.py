"""Episodes on disk: JSON lines, one episode on each line, with a version.

The format, for readers in other languages, is on the page ``docs/trace_format.md``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path

import msgspec

from swarm_ui.errors import UNREADABLE, TraceError, brief
from swarm_ui.files import LineFile, replacing
from swarm_ui.trace.records import TRACE_VERSION, Episode

Anywhere = str | os.PathLike[str]


class _Line(msgspec.Struct, frozen=True, gc=False):
    version: int | None = None
    episode: msgspec.Raw = msgspec.Raw()


_LINES, _EPISODES = msgspec.json.Decoder(_Line), msgspec.json.Decoder(Episode)


def write_jsonl(path: Anywhere, episodes: Iterable[Episode]) -> None:
    """Write or replace a file. Atomic: after a crash it is either the complete old or new file.
    Raises ``TraceError`` if an episode has a text that JSON cannot represent."""
    target = Path(path)
    with replacing(target) as file:
        for number, episode in enumerate(episodes, start=1):
            file.write(_line(episode, target, number) + b"\n")


def append_jsonl(path: Anywhere, episodes: Iterable[Episode]) -> None:
    """Add episodes to a file, which is created if missing. They are on disk when this returns.

    Raises ``TraceError`` if the file's last line has no end, as after a crash or in a file of
    another kind, or an episode has a text that JSON cannot represent; the file is as before.
    """
    target = Path(path)
    lines = [_line(episode, target, n) for n, episode in enumerate(episodes, start=1)]
    with FileIO(target, "a+") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                raise TraceError(
                    f"{target}: the last line has no end, so nothing is added; remove that line, "
                    "or give another file"
                )
        LineFile(file).append(*lines)


def iter_jsonl(path: Anywhere, *, whole: bool = True) -> Iterator[Episode]:
    """Episodes of a file one by one, without loading it whole. Raises ``TraceError`` for a line
    that is truncated, of another version, or not an episode.

    ``whole``: a truncated last line is an error. If not, it is left out: a run that was killed, or
    that still writes, leaves one.
    """
    source = Path(path)
    try:
        file = source.open("rb")
    except OSError as error:
        raise TraceError(f"{source}: cannot be opened: {error.strerror}") from error
    with file:
        for number, line in enumerate(file, start=1):
            where = f"{source}, line {number}"
            if not line.endswith(b"\n"):
                if whole:
                    raise TraceError(
                        f"{where}: cut off after {len(line)} bytes; read it with whole=False"
                    )
                return
            try:
                found = _LINES.decode(line)
                if found.version != TRACE_VERSION:
                    raise TraceError(
                        f"{where}: version {found.version}; this release reads version "
                        f"{TRACE_VERSION}"
                    )
                episode = _EPISODES.decode(found.episode)
            except UNREADABLE as error:
                raise TraceError(f"{where}: not an episode: {brief(error)}") from error
            yield episode


def read_jsonl(path: Anywhere) -> list[Episode]:
    """All episodes of a file; see :func:`iter_jsonl`."""
    return list(iter_jsonl(path))


def _line(episode: Episode, target: Path, number: int) -> bytes:
    if episode.notes:
        episode = msgspec.structs.replace(episode, notes=())
    try:
        return b'{"version":%d,"episode":%s}' % (TRACE_VERSION, msgspec.json.encode(episode))
    except UnicodeEncodeError as error:
        raise TraceError(
            f"{target}: episode {number} cannot be written: a text has half a character "
            f"({error.object[max(0, error.start - 20) : error.start + 20]!r}); replace it"
        ) from error
