"""Records of benchmarks: files of figures that are kept in the source, in benchmarks/results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic

RESULTS = Path(__file__).resolve().parents[1] / "results"
FILES = "files"
"""Where a record keeps the files of its study, if it does; see ``benchmarks/studies/restore.py``.
"""
_COMMANDS = {
    "coordination": "python -m benchmarks.speed.worlds --only coordination --record",
    "edge_power": "python -m benchmarks.speed.edges --only power --record",
    "invented_training_general": "python -m benchmarks.studies.invented_training --study general "
    "--out FOLDER --record",
    "invented_training_teacher": "python -m benchmarks.studies.invented_training --study teacher "
    "--out FOLDER --record",
    "learning": "python benchmarks/learning.py --out FOLDER --record",
    "local_model": "python -m benchmarks.speed.models --only text --adapter smollm2-phone --record",
    "scale": "python -m benchmarks.speed.ray --record",
    "served_actor": "python -m benchmarks.speed.models --only served --peers "
    "--adapter smollm2-phone --record",
    "split": "python -m benchmarks.studies.split --record",
    "windows": "python -m benchmarks.studies.windows --out FOLDER --train-teams --record",
}
"""The commands of records that are not made as those of other studies are."""
T = TypeVar("T")


def record_path(name: str) -> Path:
    """The file of a record."""
    return RESULTS / f"{name}.json"


def command_of(name: str) -> str:
    """The command that makes a record."""
    return _COMMANDS.get(name, f"python -m benchmarks.studies.{name} --out FOLDER --record")


def read_record(name: str, kind: type[T]) -> T:
    """The figures of a record.

    Args:
        name: name of the record, such as ``"credit"``.
        kind: their type; anything that ``msgspec`` decodes.

    Raises:
        ConfigError: there is no such record, or it cannot be read.
    """
    path = record_path(name)
    shown = f"benchmarks/results/{path.name}"
    try:
        document = msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError as error:
        raise ConfigError(
            f"nothing is recorded: there is no '{shown}'; '{command_of(name)}' makes it"
        ) from error
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"'{shown}' cannot be read: {error}; '{command_of(name)}' makes it again"
        ) from error
    if isinstance(document, dict):
        document.pop(FILES, None)
    return document


def write_record(name: str, record: Any, files: Mapping[str, Any] | None = None) -> None:
    """Keep figures in the source.

    Args:
        name: name of the record.
        record: anything that ``msgspec`` encodes as an object.
        files: what :func:`~benchmarks.studies.restore.packed_files` makes of the study's folder.
            Each part of it is one line.
    """
    text = msgspec.json.format(msgspec.json.encode(record), indent=1)
    if files is not None:
        body = text.removesuffix(b"\n}")
        text = body + f',\n "{FILES}": '.encode() + _lines(files) + b"\n}"
    write_atomic(record_path(name), text + b"\n")


def _lines(value: Any, indent: bytes = b" ") -> bytes:
    """JSON in which the objects and lists of the first two levels have a line for each item."""
    if len(indent) > 2 or not value or not isinstance(value, dict | list):
        return msgspec.json.encode(value)
    if isinstance(value, dict):
        inside = [msgspec.json.encode(k) + b": " + _lines(v, indent + b" ")
                  for k, v in value.items()]  # fmt: skip
        first, last = b"{", b"}"
    else:
        inside = [_lines(v, indent + b" ") for v in value]
        first, last = b"[", b"]"
    line = b"\n" + indent + b" "
    return first + line + (b"," + line).join(inside) + b"\n" + indent + last
