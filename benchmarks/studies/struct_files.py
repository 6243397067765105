"""Files of a study; each contains one record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.storage.durable import write_atomic

T = TypeVar("T")


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
