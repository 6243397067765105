"""The files of a Mind2Web split, and the position of each task in them.

Formats: the raw JSON (an array of tasks), and the flattened rows of the multimodal copy (one
action each) as parquet, JSON lines or a JSON array. One task at a time is read.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import msgspec

from swarm_ui.environments.mind2web.raw_records import (
    ROW_FIELDS,
    Picture,
    RecordedTask,
    read_rows,
    read_task,
    wrong_record,
)
from swarm_ui.environments.recorded.record_file import RecordFile
from swarm_ui.errors import ConfigError, MissingExtra

Split = Literal["train", "test_task", "test_website", "test_domain"]
SPLITS: tuple[str, ...] = get_args(Split)
_PNG = b"\x89PNG\r\n\x1a\n"
FORMATS = (".json", ".jsonl", ".parquet")


class _Head(msgspec.Struct):
    annotation_id: str
    action_uid: str | None = None
    """Only flattened rows have it at the top level."""


Position = tuple["_File", int]


class _File(Protocol):
    """A file of tasks or of rows."""

    def heads(self) -> Iterator[_Head]:
        """The ids of each record, in order."""
        ...

    def row(self, index: int) -> object: ...

    def where(self, index: int) -> str: ...

    @property
    def path(self) -> Path: ...


class Files:
    """Tasks of one split. The files are indexed one by one, until the wanted task is complete."""

    def __init__(self, root: str | Path, split: str, *, screenshots: bool) -> None:
        if split not in SPLITS:
            raise ConfigError(f"Mind2Web has the splits {', '.join(SPLITS)}; got {split!r}")
        self.root = Path(root).expanduser()
        self._screenshots = screenshots
        self._not_indexed = iter(_find(self.root, split))
        self._positions: dict[str, list[Position]] = {}
        self._raw = False

    def tasks(self) -> tuple[str, ...]:
        """Ids of all tasks, in the order of the files."""
        self._index_until(None)
        return tuple(self._positions)

    def load(self, task: str) -> RecordedTask:
        """A task. Raises ``ConfigError`` if there is no such task, or it cannot be read."""
        # A raw task is one record. The rows of a task may be in several files.
        self._index_until(task)
        positions = self._positions.get(task)
        if positions is None:
            raise ConfigError(f"{self.root}: no task {task!r} among {len(self._positions)}")
        if not self._raw:
            rows = [(file.row(index), file.where(index)) for file, index in positions]
            return read_rows(rows, self._picture(positions[0][0].path))
        file, index = positions[0]
        if len(positions) > 1:
            again, at = positions[1]
            raise ConfigError(f"{again.where(at)}: the task {task!r} occurs twice")
        raw = file.row(index)
        assert isinstance(raw, msgspec.Raw)
        return read_task(raw, f"{file.where(index)} ({task})")

    def _picture(self, beside: Path) -> Picture | None:
        return _picture_beside(beside) if self._screenshots else None

    def _index_until(self, task: str | None) -> None:
        """Index files until the task is complete; ``None`` for all files."""
        while not (self._raw and task in self._positions):
            path = next(self._not_indexed, None)
            if path is None:
                return
            self._add(_Parquet(path) if path.suffix == ".parquet" else _Json(path))

    def _add(self, file: _File) -> None:
        for index, head in enumerate(file.heads()):
            raw = head.action_uid is None
            if self._positions and raw != self._raw:
                raise ConfigError(
                    f"{file.where(index)}: raw tasks and flattened rows of one split are mixed "
                    f"under {self.root}; name one file or one folder of them"
                )
            if raw and self._screenshots:
                raise ConfigError(
                    f"{file.path}: the raw format has no screenshots; use the multimodal copy, "
                    "or screenshots=False"
                )
            self._raw = raw
            self._positions.setdefault(head.annotation_id, []).append((file, index))


def _find(root: Path, split: str) -> list[Path]:
    """The files of a split: ``root`` itself, or the files below it whose names begin with it."""
    if root.is_file():
        found = [root]
    else:
        below = root.rglob(f"{split}*") if root.is_dir() else ()
        found = sorted(path for path in below if path.is_file() and path.suffix in FORMATS)
    kinds = {path.suffix for path in found}
    if not found or not kinds <= set(FORMATS):
        raise ConfigError(
            f"{root}: no Mind2Web data of '{split}' found. Expected a file, or a folder with "
            f"{split}_0.json … (raw), or {split}*.parquet or {split}.jsonl (flattened). "
            "Where to get it: see swarm_ui.environments.mind2web"
        )
    if len(kinds) > 1:
        raise ConfigError(
            f"{root}: '{split}' exists in several formats: {', '.join(sorted(kinds))}; "
            "name one file or one folder of them"
        )
    return found


class _Json:
    """JSON lines, or a JSON array."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = RecordFile(path)

    def heads(self) -> Iterator[_Head]:
        for index in range(len(self._lines)):
            yield self._lines.read(index, _Head)

    def row(self, index: int) -> object:
        return self._lines.raw(index)

    def where(self, index: int) -> str:
        return self._lines.where(index)


class _Parquet:
    """A parquet file. It keeps one row group in memory, with the used fields only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            parquet = importlib.import_module("pyarrow.parquet")
        except ImportError as error:
            raise MissingExtra("mind2web", f"reading {path.name}", "pyarrow") from error
        try:
            self._file: Any = parquet.ParquetFile(path)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: not a parquet file: {error}") from error
        names = set(self._file.schema_arrow.names)
        missing = [name for name in ROW_FIELDS if name not in names and name != "website"]
        if missing:
            raise ConfigError(
                f"{path}: not flattened Mind2Web rows: the columns {', '.join(missing)} are missing"
            )
        self._columns = [name for name in (*ROW_FIELDS, "screenshot") if name in names]
        counts = [self._file.metadata.row_group(g).num_rows for g in range(self._groups)]
        self._starts = [sum(counts[:g]) for g in range(self._groups)]
        self._held: tuple[int, Any] | None = None

    @property
    def _groups(self) -> int:
        return int(self._file.num_row_groups)

    def heads(self) -> Iterator[_Head]:
        names = self._file.read(columns=["annotation_id"]).column(0).to_pylist()
        for index, name in enumerate(names):
            if not isinstance(name, str):
                raise wrong_record(
                    self.where(index), TypeError("'annotation_id' is not text"), "row"
                )
            yield _Head(annotation_id=name, action_uid="")

    def row(self, index: int) -> object:
        group = max(g for g, start in enumerate(self._starts) if start <= index)
        if self._held is None or self._held[0] != group:
            self._held = (group, self._file.read_row_group(group, columns=self._columns))
        return self._held[1].slice(index - self._starts[group], 1).to_pylist()[0]

    def where(self, index: int) -> str:
        return f"{self.path}, row {index}"


def _picture_beside(file: Path) -> Picture:
    """A function that reads a row's ``screenshot``: bytes, or a path relative to ``file``."""

    def picture(screenshot: object, where: str) -> bytes:
        held = screenshot.get("bytes") if isinstance(screenshot, dict) else None
        name = screenshot.get("path") if isinstance(screenshot, dict) else screenshot
        if not isinstance(held, bytes):
            if not isinstance(name, str) or not (file.parent / name).is_file():
                raise ConfigError(
                    f"{where}: 'screenshot' is neither bytes nor the path of a picture beside the "
                    f"file: {name!r}; use screenshots=False"
                )
            held = (file.parent / name).read_bytes()
        return held if held.startswith(_PNG) else _converted(held, where)

    return picture


def _converted(held: bytes, where: str) -> bytes:
    from PIL import Image

    out = BytesIO()
    try:
        with Image.open(BytesIO(held)) as image:
            image.save(out, format="PNG")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: 'screenshot' cannot be read as a picture: {error}") from error
    return out.getvalue()
