"""Mind2Web's files: raw tasks as JSON, or rows of single actions as parquet or JSON lines.

A file is mapped into memory, and a task is decoded when it is needed. Unused fields are skipped;
one of them is ``raw_html``, by far the largest.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import msgspec

from swarm_ui.errors import ConfigError, MissingExtra

_FORMATS = (".json", ".jsonl", ".parquet")
Read = Callable[[], dict[str, Any]]
"""Reads one record: a raw task, or a row."""


class Operation(msgspec.Struct, frozen=True):
    """What was done with the right element."""

    op: Literal["CLICK", "TYPE", "SELECT"]
    value: str | None = None


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


class _Head(msgspec.Struct):
    annotation_id: str


def find_tasks(root: Path, split: str) -> dict[str, list[Read]]:
    """The records of each task of a split: of the file ``root``, or of the files below it whose
    names begin with the split's name.

    Raises:
        ConfigError: there are no files, their formats differ, or one cannot be read.
    """
    below = [root] if root.is_file() else root.rglob(f"{split}*") if root.is_dir() else ()
    paths = sorted(path for path in below if path.is_file() and path.suffix in _FORMATS)
    kinds = sorted({path.suffix for path in paths})
    if len(kinds) != 1:
        raise ConfigError(
            f"{root}: expected the Mind2Web data of '{split}' in one format, got "
            f"{' and '.join(kinds) or 'no file'}; name a file, or a folder with {split}_0.json … "
            f"(raw), {split}*.parquet or {split}.jsonl (flattened)"
        )
    found: dict[str, list[Read]] = {}
    for path in paths:
        try:
            read = _read_parquet(path) if path.suffix == ".parquet" else _read_json(path)
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(
                f"{path}: not a file of Mind2Web: {error}. Is the download complete?"
            ) from error
        for name, record in read:
            found.setdefault(name, []).append(record)
    return found


def _read_json(path: Path) -> list[tuple[str, Read]]:
    """Raw tasks as one JSON array, or rows as JSON lines."""
    with path.open("rb") as file:
        # An empty file cannot be mapped.
        size = path.stat().st_size
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    lines = memoryview(data)
    if path.suffix == ".jsonl":
        raws = msgspec.json.Decoder(msgspec.Raw).decode_lines(lines)
    else:  # raw values are skipped, not decoded, so the array takes little memory
        raws = msgspec.json.decode(lines, type=list[msgspec.Raw])
    names = [msgspec.json.decode(raw, type=_Head).annotation_id for raw in raws]
    read = partial(msgspec.json.decode, type=dict[str, Any])
    return [(name, partial(read, raw)) for name, raw in zip(names, raws, strict=True)]


def _read_parquet(path: Path) -> list[tuple[str, Read]]:
    """Rows as parquet, which ``datasets`` converts once into a file that it maps into memory."""
    try:
        from datasets import Dataset, Image
        from datasets.exceptions import DatasetGenerationError
    except ImportError as error:
        raise MissingExtra("mind2web", f"reading {path.name}", "datasets") from error
    try:
        rows = Dataset.from_parquet(str(path))
    except DatasetGenerationError as error:
        raise ValueError(error.__cause__ or error) from error
    rows = rows.select_columns([c for c in Recorded.__struct_fields__ if c in rows.column_names])
    if "screenshot" in rows.column_names:
        rows = rows.cast_column("screenshot", Image(decode=False))
    return [(name, partial(rows.__getitem__, k)) for k, name in enumerate(rows["annotation_id"])]


def read_task(task: str, records: list[Read], *, screenshots: bool) -> list[Recorded]:
    """The actions of a task, in their order.

    Raises:
        ConfigError: a record is wrong.
    """
    found: dict[int, Recorded] = {}
    try:
        for read in records:
            record = read()
            actions = record.pop("actions", [{}])  # a row is a task with one action
            for k, action in enumerate(actions):
                row = _recorded({"target_action_index": k, **record, **action})
                if not 0 <= row.target_action_index < len(row.action_reprs):
                    raise ValueError("'target_action_index' is not one of 'action_reprs'")
                shown = _png(row.screenshot) if screenshots else None
                found[row.target_action_index] = msgspec.structs.replace(row, screenshot=shown)
    except (LookupError, TypeError, ValueError, OSError) as error:
        raise ConfigError(f"task {task!r}: not an action of Mind2Web: {error}") from error
    return [found[at] for at in sorted(found)]


def _recorded(row: dict[str, Any]) -> Recorded:
    """An action. Flattened rows hold JSON text where raw tasks hold objects."""
    row["operation"] = _opened(row.get("operation"))
    for side in ("pos_candidates", "neg_candidates"):
        row[side] = [_opened(one) for one in row[side]]
        for one in row[side]:
            one["attributes"] = _opened(one.get("attributes", "{}"))
    return msgspec.convert(row, Recorded, strict=False)


def _opened(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, str) else value


def _png(screenshot: Any) -> bytes:
    """The picture of a row as a PNG."""
    from PIL import Image

    out = BytesIO()
    if not isinstance(screenshot, dict) or not screenshot.get("bytes"):
        raise ValueError("it has no 'screenshot'; use screenshots=False, or the multimodal copy")
    with Image.open(BytesIO(screenshot["bytes"])) as image:
        image.save(out, format="PNG")
    return out.getvalue()
