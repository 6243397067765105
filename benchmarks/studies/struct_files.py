"""Files of a study; each contains one record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.support.origin import Origin, origin
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic

T = TypeVar("T")


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where the figures of a study come from."""

    origin: Origin
    commits: list[str]
    """Of the cells."""
    data: dict[str, str]
    """SHA-256 of each file."""


def sources_of(study: str, files: Iterable[Path], commits: Iterable[str]) -> dict[str, Any]:
    """The fields of :class:`Sources`.

    Args:
        study: its name, with the options that choose its record.
        files: the files of the figures.
        commits: those that made the cells.
    """
    made = origin(f"python -m benchmarks.studies.{study}")
    return {"origin": made, "commits": sorted(set(commits)), "data": file_hashes(files)}


def read_struct(path: Path, kind: type[T]) -> T:
    """The record in a file.

    Raises:
        ConfigError: the file is missing, or has something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"'{path}' cannot be read as a file of this study: {error}") from error


def read_cells(folder: Path, kind: type[T]) -> dict[Path, T]:
    """The finished cells of a study, by file.

    Raises:
        ConfigError: there are none, or a file has something else.
    """
    cells = {path: read_struct(path, kind) for path in sorted((folder / "cells").glob("*.json"))}
    if not cells:
        raise ConfigError(f"'{folder}' has no finished cell of this study")
    return cells


def file_hashes(paths: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of files, by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def write_struct(path: Path, record: Any) -> None:
    """Write a record, or anything that ``msgspec`` encodes, as JSON, whole or not at all."""
    write_atomic(path, msgspec.json.encode(record) + b"\n")
