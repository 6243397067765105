"""Mind2Web's files: raw tasks as JSON, or rows of single actions as parquet or JSON lines.

A file is mapped into memory, and a task is decoded when it is needed. Unused fields are skipped;
one of them is ``raw_html``, by far the largest.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from PIL import Image

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.files import MappedLines

_OPERATIONS = ("CLICK", "TYPE", "SELECT")
_FORMATS = (".json", ".jsonl", ".parquet")
Kind = TypeVar("Kind")


class Operation(msgspec.Struct, frozen=True):
    """What was done with the right element."""

    op: str
    value: str | None = None

    def __post_init__(self) -> None:
        if self.op not in _OPERATIONS:
            raise ValueError(f"'op' must be one of {', '.join(_OPERATIONS)}, got {self.op!r}")


class Candidate(msgspec.Struct, frozen=True):
    """An element of a page that may be the right one."""

    tag: str
    node: str = msgspec.field(name="backend_node_id")
    """What the official scorer compares."""
    attributes: dict[str, Any] = {}

    def get(self, *names: str) -> str:
        """The first of these attributes that is not empty."""
        found = (self.attributes.get(name) for name in names)
        return next((str(value) for value in found if value), "")


class Recorded(msgspec.Struct, frozen=True):
    """A recorded action, its task, and the page before it: a row of the flattened format."""

    annotation_id: str
    """Name of the task."""
    confirmed_task: str
    """The goal."""
    action_reprs: tuple[str, ...]
    """All recorded actions of the task, such as ``"[button]  Search -> CLICK"``."""
    target_action_index: int
    """Which of them this is."""
    action_uid: str
    cleaned_html: str
    operation: Operation
    pos_candidates: tuple[Candidate, ...]
    """The right elements of the page; may be empty."""
    neg_candidates: tuple[Candidate, ...]
    website: str = ""
    screenshot: Any = None
    where: str = ""
    """File and number of the record, for error messages."""


class _Head(msgspec.Struct):
    annotation_id: str


class Files:
    """The tasks of one split, by the files in which they stand.

    Raises:
        ConfigError: there are no files, or their format is wrong.
    """

    def __init__(self, root: str | Path, split: str, *, screenshots: bool) -> None:
        self.root = Path(root).expanduser()
        self._paths = _find(self.root, split)
        self._raw = self._paths[0].suffix == ".json"
        self._screenshots = screenshots
        if screenshots and self._raw:
            raise ConfigError(
                f"{self.root}: the raw format has no screenshots; use the multimodal copy, or "
                "screenshots=False"
            )

    @cached_property
    def tasks(self) -> dict[str, list[tuple[_File, int]]]:
        """The records of each task, in the order of the files."""
        found: dict[str, list[tuple[_File, int]]] = {}
        for path in self._paths:
            file: _File = _Parquet(path) if path.suffix == ".parquet" else _Json(path)
            for index, name in enumerate(file.names()):
                found.setdefault(name, []).append((file, index))
        return found

    def load(self, task: str) -> list[Recorded]:
        """A task. Raises ``ConfigError`` if there is no such task, or it cannot be read."""
        places = self.tasks.get(task)
        if places is None:
            raise ConfigError(f"{self.root}: no task {task!r} among {len(self.tasks)}")
        rows: dict[int, Recorded] = {}
        for file, number in places:
            record, where = file.record(number), file.where(number)
            for row in _rows_of(record, where) if self._raw else [_recorded(record, where)]:
                at = row.target_action_index
                if at in rows or not 0 <= at < len(row.action_reprs):
                    raise ConfigError(
                        f"{row.where}: action {at} of task '{task}' occurs twice, or is not one of "
                        f"the {len(row.action_reprs)} 'action_reprs'"
                    )
                shown = _png(row, file.path) if self._screenshots else None
                rows[at] = replace(row, screenshot=shown)
        return [rows[at] for at in sorted(rows)]


def _rows_of(task: dict[str, Any], where: str) -> list[Recorded]:
    """The actions of a raw task, as the flattened format has them."""
    actions = task.pop("actions", None)
    if not isinstance(actions, list) or not all(isinstance(one, dict) for one in actions):
        raise ConfigError(f"{where}: not a task of Mind2Web: no list 'actions' of objects")
    return [
        _recorded({**task, **action, "target_action_index": k}, f"{where}, action {k}")
        for k, action in enumerate(actions)
    ]


def _recorded(row: dict[str, Any], where: str) -> Recorded:
    """An action. Flattened rows hold JSON text where raw tasks hold objects."""
    try:
        row["operation"] = _opened(row.get("operation"))
        for side in ("pos_candidates", "neg_candidates"):
            row[side] = [_opened(one) for one in _opened(row.get(side)) or ()]
            for one in row[side]:
                one["attributes"] = _opened(one.get("attributes", "{}"))
        return msgspec.convert({**row, "where": where}, Recorded, strict=False)
    except (msgspec.MsgspecError, TypeError, AttributeError) as error:
        raise ConfigError(f"{where}: not an action of Mind2Web: {error}") from error


def _opened(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, str) else value


def _find(root: Path, split: str) -> list[Path]:
    """The files of a split: ``root`` itself, or the files below it whose names begin with it."""
    below = [root] if root.is_file() else root.rglob(f"{split}*") if root.is_dir() else ()
    found = sorted(path for path in below if path.is_file() and path.suffix in _FORMATS)
    kinds = sorted({path.suffix for path in found})
    if len(kinds) != 1:
        raise ConfigError(
            f"{root}: expected the Mind2Web data of '{split}' in one format, got "
            f"{' and '.join(kinds) or 'no file'}; name a file, or a folder with {split}_0.json … "
            f"(raw), {split}*.parquet or {split}.jsonl (flattened)"
        )
    return found


class _Json:
    """Raw tasks as one JSON array, or rows as JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            lines = MappedLines(path)
            if path.suffix == ".jsonl":
                every = (lines[k] for k in range(len(lines)))
                self._records = [msgspec.Raw(line) for line in every if bytes(line).strip()]
            else:  # raw values are skipped, not decoded, so the array takes little memory
                self._records = msgspec.json.decode(lines.view, type=list[msgspec.Raw])
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                f"{path}: not a file of JSON records: {error}. Is the download complete?"
            ) from error

    def names(self) -> Iterator[str]:
        for index in range(len(self._records)):
            yield self._decoded(index, _Head).annotation_id

    def record(self, index: int) -> dict[str, Any]:
        return self._decoded(index, dict[str, Any])

    def where(self, index: int) -> str:
        return f"{self.path}, record {index}"

    def _decoded(self, index: int, kind: type[Kind]) -> Kind:
        try:
            return msgspec.json.decode(self._records[index], type=kind)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{self.where(index)}: {error}") from error


class _Parquet:
    """Rows as parquet. One row group is in memory, with the used columns only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            parquet = importlib.import_module("pyarrow.parquet")
        except ImportError as error:
            raise MissingExtra("mind2web", f"reading {path.name}", "pyarrow") from error
        try:
            self._file: Any = parquet.ParquetFile(path)
            self._names = self._file.read(columns=["annotation_id"])["annotation_id"].to_pylist()
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(f"{path}: not a parquet file of Mind2Web: {error}") from error
        groups = range(self._file.num_row_groups)
        counts = [self._file.metadata.row_group(group).num_rows for group in groups]
        self._places = [(g, k) for g, count in enumerate(counts) for k in range(count)]
        self._held: tuple[int, Any] = (-1, None)

    def names(self) -> Iterator[str]:
        return iter(self._names)

    def record(self, index: int) -> dict[str, Any]:
        group, row = self._places[index]
        if self._held[0] != group:
            self._held = (group, self._file.read_row_group(group, columns=list(_COLUMNS)))
        found: dict[str, Any] = self._held[1].slice(row, 1).to_pylist()[0]
        return found

    def where(self, index: int) -> str:
        return f"{self.path}, row {index}"


_File = _Json | _Parquet
_COLUMNS = Recorded.__struct_fields__


def _png(row: Recorded, file: Path) -> bytes:
    """The picture of a row: bytes, or a path relative to the file."""
    shown = row.screenshot if isinstance(row.screenshot, dict) else {"path": row.screenshot}
    held, out = shown.get("bytes"), BytesIO()
    try:
        with Image.open(BytesIO(held) if held else file.parent / str(shown.get("path"))) as image:
            image.save(out, format="PNG")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{row.where}: 'screenshot' is neither a picture nor the path of one beside the file: "
            f"{error}; use screenshots=False"
        ) from error
    return out.getvalue()
