"""The JSON files of a study: one for each finished part, and the figures for the last line."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.stats import Interval

T = TypeVar("T")


def read_part(path: Path, of: type[T]) -> T:
    """A finished part of a study.

    Raises:
        ConfigError: the file cannot be read, or holds something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=of)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"'{path}' is not a file of this study: {error}") from error


def numbers(interval: Interval | None) -> list[float] | None:
    """Mean, lower and upper end."""
    return None if interval is None else [interval.mean, interval.low, interval.high]
