"""A record holds the small files of its study, so that the study goes on in an empty folder.

The files are those from which the tables are computed: settings, and cells with the outcome of each
episode. Trained weights are not among them. ``--restore`` of a study writes the files that are
missing in its folder; then finished cells are not repeated, and new seeds and arms are added.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.studies.columns import Columns
from benchmarks.support.records import FILES, command_of, read_record, record_path
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.script_runner import check_study, other_options
from swarm_ui.files import whole_lines, write_atomic

_LINES = ".jsonl"


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a study, as a record holds them."""

    columns: list[Any]
    content: dict[str, Any]
    """By path in the study's folder; see :class:`~benchmarks.studies.columns.Columns`."""


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    files: Packed | None = None


def found_files(folder: Path, patterns: Sequence[str]) -> dict[str, Any]:
    """The files of a study that match one of the patterns, by path in its folder.

    Files whose names end with ``.jsonl`` are lists of their lines.
    """
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return {p.relative_to(folder).as_posix(): _decoded(p) for p in paths}


def packed_files(files: Mapping[str, Any]) -> dict[str, Any]:
    """Files as a record holds them, for :func:`~benchmarks.support.records.write_record`.

    ``files``: anything that ``msgspec`` encodes, by path.
    """
    columns, plain = Columns(), msgspec.json.decode(msgspec.json.encode(files))
    content = {path: columns.packed(value) for path, value in plain.items()}
    return {"columns": columns.all, "content": content}


def recorded_files(name: str) -> dict[str, Any]:
    """The files that a record holds, by path in the study's folder.

    Raises:
        ConfigError: there is no such record, or it holds no files.
    """
    read_record(name, dict[str, Any])  # says how to make it, if there is none
    files = msgspec.json.decode(record_path(name).read_bytes(), type=_Record).files
    if files is None:
        raise ConfigError(
            f"the record '{name}' has no cells in '{FILES}', because an earlier version made it: "
            f"nothing can be restored. '{command_of(name)}' measures all again"
        )
    columns = Columns(files.columns)
    return {path: columns.unpacked(value) for path, value in files.content.items()}


def restore(
    name: str,
    folder: Path,
    settings: Mapping[str, Any],
    files: Mapping[str, Any] | None = None,
) -> None:
    """Write the files of a record that a study's folder lacks; existing ones stay as they are.

    Args:
        name: name of the record.
        folder: folder of the study; it may be missing.
        settings: settings of the present command, by their file. The files of these paths in the
            record and in the folder must have equal settings.
        files: files of the record; ``None``: those that it holds in ``"files"``.

    Raises:
        ConfigError: the record has no files, or record or folder have other settings.
    """
    found = recorded_files(name) if files is None else files
    used = {path: now for path, now in settings.items() if path in found}
    for path, now in used.items():
        other = other_options(found[path], now)
        if other:
            raise ConfigError(
                f"the record '{name}' was made with other settings ({other}): its cells cannot be "
                "continued. Give the same options, or measure all again"
            )
    for path, now in used.items():
        check_study(folder / path, now)
    missing = [path for path in found if path not in used and not (folder / path).exists()]
    for path in missing:
        write_atomic(folder / path, _encoded(path, found[path]))
    there = len(found) - len(used) - len(missing)
    print(
        f"restored {len(missing)} files of the record '{name}'; {there} were there and stay as "
        "they are",
        file=sys.stderr,
    )


def _encoded(path: str, value: Any) -> bytes:
    lines = value if path.endswith(_LINES) else [value]
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def _decoded(path: Path) -> Any:
    try:
        if path.name.endswith(_LINES):
            return [msgspec.json.decode(line) for line in whole_lines(path)]
        return msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"'{path}' cannot be read: {error}") from error
