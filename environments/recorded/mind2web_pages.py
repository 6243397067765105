"""Mind2Web's files, and the pages in them: records, candidates and their elements.

Raw tasks come as JSON, rows of single actions as parquet or JSON lines. A file is mapped into
memory, and a task is decoded when it is needed; unread fields, such as ``raw_html``, are skipped.
"""

from __future__ import annotations

import math
import mmap
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec

from swarm_ui.environments.recorded.web_elements import first_words, role_of
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.observation import Element

_FORMATS = (".json", ".jsonl", ".parquet")
_WORDS, _OPTIONS = 12, 60
"""Maximum number of words of an element's text, and of a drop-down list, whose text is its
options."""
_TEXT_ATTRIBUTES = (
    "aria_label", "placeholder", "title", "alt", "label", "name", "value", "input_value",
)  # fmt: skip
_TAG_PRIORS = {"a": 1.0, "button": 1.0, "input": 1.0, "select": 1.0, "textarea": 1.0, "option": 0.5}
Read = Callable[[], dict[str, Any]]
"""Reads one record: a raw task, or a row."""


class Candidate(msgspec.Struct):
    """An element of a page that may be the right one."""

    tag: str
    node: str = msgspec.field(name="backend_node_id")
    """What the official scorer compares."""
    attributes: dict[str, Any] = {}
    text: str = ""
    """Its text on the page, with that of its descendants."""

    def get(self, *names: str) -> str:
        """The first of these attributes that is not empty."""
        return next((str(found) for name in names if (found := self.attributes.get(name))), "")

    def flag(self, *names: str) -> bool | None:
        """The first of these attributes as a state; ``None`` if it has none of them."""
        given = [value for name in names if (value := self.attributes.get(name)) is not None]
        return str(given[0]).lower() not in ("false", "0") if given else None


class Row(msgspec.Struct):
    """A recorded action, its task, and the page before it: a row of the flattened format."""

    annotation_id: str
    """Name of the task."""
    confirmed_task: str
    """The goal."""
    action_reprs: list[str]
    """All recorded actions of the task, such as ``"[button]  Search -> CLICK"``."""
    target_action_index: int
    """Which of them this is."""
    action_uid: str
    cleaned_html: str
    operation: dict[str, str | None]
    pos_candidates: list[Candidate]
    """The right elements of the page; may be empty."""
    neg_candidates: list[Candidate]
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
    if path.suffix == ".jsonl":
        raws = msgspec.json.Decoder(msgspec.Raw).decode_lines(memoryview(data))
    else:  # raw values are skipped, not decoded, so the array takes little memory
        raws = msgspec.json.decode(memoryview(data), type=list[msgspec.Raw])
    read = partial(partial, partial(msgspec.json.decode, type=dict[str, Any]))
    return [(msgspec.json.decode(raw, type=_Head).annotation_id, read(raw)) for raw in raws]


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
    rows = rows.select_columns([c for c in Row.__struct_fields__ if c in rows.column_names])
    if "screenshot" in rows.column_names:
        rows = rows.cast_column("screenshot", Image(decode=False))
    return [(name, partial(rows.__getitem__, k)) for k, name in enumerate(rows["annotation_id"])]


def read_task(records: list[Read]) -> list[Row]:
    """The actions of a task, in their order. Raises an error of ``msgspec`` or Python if a record
    is wrong."""
    found: dict[int, Row] = {}
    for read in records:
        record = read()
        actions = record.pop("actions", [{}])  # a row is a task with one action
        for k, action in enumerate(actions):
            row = _row({"target_action_index": k, **record, **action})
            found[row.target_action_index] = row
    return [found[at] for at in sorted(found)]


def _row(told: dict[str, Any]) -> Row:
    """An action. Flattened rows hold JSON text where raw tasks hold objects."""
    told["operation"] = _opened(told["operation"])
    for side in ("pos_candidates", "neg_candidates"):
        told[side] = [_opened(one) for one in told[side]]
        for one in told[side]:
            one["attributes"] = _opened(one.get("attributes", "{}"))
    return msgspec.convert(told, Row, strict=False)


def _opened(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, str) else value


def png(screenshot: Any) -> bytes:
    """The picture of a row as a PNG."""
    from PIL import Image

    if not isinstance(screenshot, dict):
        raise ValueError("it has no 'screenshot'; use screenshots=False, or the multimodal copy")
    out = BytesIO()
    with Image.open(BytesIO(screenshot["bytes"])) as image:
        image.save(out, format="PNG")
    return out.getvalue()


def candidates(row: Row) -> list[Candidate]:
    """The candidates with their texts, in the order of the page; those that are not on it come
    last. The order of the data is not used, because it lists the right candidates first."""
    unplaced = {c.node: c for c in (*row.neg_candidates, *row.pos_candidates)}
    placed = []
    for node in ElementTree.fromstring(row.cleaned_html).iter():
        found = unplaced.pop(node.get("backend_node_id", ""), None)
        if found is not None:
            found.text = " ".join(" ".join(node.itertext()).split())
            placed.append(found)
    return placed + sorted(unplaced.values(), key=lambda c: (len(c.node), c.node))


def ranks_by_words(goal: str, candidates: Sequence[Candidate]) -> Mapping[str, int]:
    """Ranks of nodes by the words that a candidate shares with the goal, weighted by rarity.
    Neither the recorded action nor the right elements are used."""
    asked = set(_words(goal))
    read = [_words(" ".join([c.text, *map(c.get, _TEXT_ATTRIBUTES)])) for c in candidates]
    pages = Counter(word for words in read for word in set(words))

    def score(candidate: Candidate, words: list[str]) -> float:
        shared = asked.intersection(words)
        rarity = sum(math.log(1 + len(candidates) / pages[word]) for word in shared)
        # A long text shares words with any goal.
        prior = _TAG_PRIORS.get(candidate.tag.lower(), 0.0)
        return rarity / (1 + math.log(1 + len(words))) + 0.5 * prior

    scores = {c.node: score(c, words) for c, words in zip(candidates, read, strict=True)}
    best_first = sorted(scores, key=lambda node: -scores[node])
    return {node: rank for rank, node in enumerate(best_first)}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def to_element(index: int, candidate: Candidate) -> Element:
    """The element of an observation that shows a candidate."""
    get, tag, text = candidate.get, candidate.tag.lower(), candidate.text
    role = role_of(tag, kind=get("type"), aria=get("role"))
    field = role in ("field", "area")
    shown = text or (get("value") if role == "button" else "")
    named = get("aria_label", "alt", "title", "label") or ("" if text else get("name"))
    return Element(
        index=index,
        role=role,
        text=first_words(shown, _OPTIONS if tag == "select" else _WORDS),
        description=first_words(named, _WORDS),
        hint=first_words(get("placeholder"), _WORDS),
        value=get("input_value", "text_value", "value") if field else None,
        checked=candidate.flag("input_checked", "checked", "aria_checked"),
        selected=candidate.flag("option_selected", "aria_selected"),
        editable=field and tag != "select",
        bounds=_bounds(get("bounding_box_rect")),
    )


def _bounds(rectangle: str) -> tuple[int, int, int, int] | None:
    """Bounds from ``x,y,width,height``. Mind2Web writes -1 for an unknown value."""
    try:
        x, y, width, height = map(float, rectangle.split(","))
        bounds = round(x), round(y), round(x + width), round(y + height)
    except (ValueError, OverflowError):
        return None
    return None if width < 0 or height < 0 else bounds
