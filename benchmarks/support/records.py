"""Records of benchmarks: files of figures that are kept in the source, in benchmarks/results."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic

RESULTS = Path(__file__).resolve().parents[1] / "results"
_COMMANDS = {
    "coordination": "python -m benchmarks.speed.worlds --only coordination --record",
    "edge_power": "python -m benchmarks.speed.edges --only power --record",
    "local_model": "python -m benchmarks.speed.models --only text --adapter smollm2-phone --record",
    "scale": "python -m benchmarks.speed.ray --record",
    "served_actor": "python -m benchmarks.speed.models --only served --peers "
    "--adapter smollm2-phone --record",
}
"""By record."""
T = TypeVar("T")


def record_path(name: str) -> Path:
    """The file of a record."""
    return RESULTS / f"{name}.json"


def command_of(name: str) -> str:
    """The command that makes a record."""
    return _COMMANDS[name]


def read_record(name: str, kind: type[T]) -> T:
    """The figures of a record.

    Args:
        name: name of the record, such as ``"scale"``.
        kind: their type; anything that ``msgspec`` decodes.

    Raises:
        ConfigError: there is no such record, or it cannot be read.
    """
    path = record_path(name)
    shown = f"benchmarks/results/{path.name}"
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError as error:
        raise ConfigError(
            f"nothing is recorded: there is no '{shown}'; '{command_of(name)}' makes it"
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"'{shown}' cannot be read: {error}; '{command_of(name)}' makes it again"
        ) from error


def write_record(name: str, record: Any) -> None:
    """Keep figures in the source; ``record``: anything that ``msgspec`` encodes as an object."""
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    write_atomic(record_path(name), text + b"\n")
