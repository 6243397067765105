"""Files of a study; each contains one record."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

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
        raise ConfigError(f"'{path}' is not a file of this study: {error}") from error


def write_struct(path: Path, record: msgspec.Struct) -> None:
    """Write a record as JSON, whole or not at all."""
    write_atomic(path, msgspec.json.encode(record) + b"\n")
