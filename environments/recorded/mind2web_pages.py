"""Mind2Web's files, and the pages in them: records, candidates and their elements.

Raw tasks come as JSON, rows of single actions as parquet or JSON lines. A file is mapped into
memory, and a task is decoded when it is needed. Unused fields are skipped; one of them is
``raw_html``, by far the largest.
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
from typing import Any, Literal
from xml.etree import ElementTree

import msgspec

from swarm_ui.environments.recorded.web_elements import first_words, role_of
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.observation import Element

_FORMATS = (".json", ".jsonl", ".parquet")
_WORDS, _OPTIONS = 12, 60
"""Maximum number of words of an element's text, and of a drop-down list, whose text is its
options."""
_WORD = re.compile(r"\w+")
_TEXT_ATTRIBUTES = (
    "aria_label", "placeholder", "title", "alt", "label", "name", "value", "input_value",
)  # fmt: skip
_TAG_PRIORS = {"a": 1.0, "button": 1.0, "input": 1.0, "select": 1.0, "textarea": 1.0, "option": 0.5}
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

    def flag(self, *names: str) -> bool | None:
        """The first of these attributes as a state; ``None`` if it has none of them."""
        given = [value for name in names if (value := self.attributes.get(name)) is not None]
        return str(given[0]).lower() not in ("false", "0") if given else None


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


# -- files ----------------------------------------------------------------------------------------


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


def read_task(records: list[Read], *, screenshots: bool) -> list[Recorded]:
    """The actions of a task, in their order. Raises an error of ``msgspec`` or Python if a record
    is wrong."""
    found: dict[int, Recorded] = {}
    for read in records:
        record = read()
        actions = record.pop("actions", [{}])  # a row is a task with one action
        for k, action in enumerate(actions):
            row = _recorded({"target_action_index": k, **record, **action})
            if not 0 <= row.target_action_index < len(row.action_reprs):
                raise ValueError("'target_action_index' is not one of 'action_reprs'")
            shown = _png(row.screenshot) if screenshots else None
            found[row.target_action_index] = msgspec.structs.replace(row, screenshot=shown)
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


# -- pages ----------------------------------------------------------------------------------------


def read_texts(row: Recorded) -> dict[str, str]:
    """Texts of the candidates by node, in the order of the page, with those of their descendants.

    A document type is refused, since its entities could grow without bound.
    """
    if "<!DOCTYPE" in row.cleaned_html:
        raise ValueError("'cleaned_html' declares a document type, which is refused")
    wanted = {c.node for c in (*row.pos_candidates, *row.neg_candidates)}
    marked = (
        (node.get("backend_node_id", ""), node)
        for node in ElementTree.fromstring(row.cleaned_html).iter()
    )
    return {
        name: " ".join(" ".join(node.itertext()).split()) for name, node in marked if name in wanted
    }


def shown_candidates(
    row: Recorded, texts: Mapping[str, str], top_k: int | None, ranks: Mapping[str, int] | None
) -> list[Candidate]:
    """The best ``top_k`` candidates in the order of the page; those that are not on it come last.

    The order of the data is not used, because it lists the right candidates first.
    """
    place = {node: index for index, node in enumerate(texts)}
    ordered = sorted(
        (*row.pos_candidates, *row.neg_candidates),
        key=lambda c: (place.get(c.node, math.inf), len(c.node), c.node),
    )
    if top_k is None:
        return ordered
    if ranks is None:
        ranks = _ranks_by_words(row.confirmed_task, ordered, texts)
    if missing := [c.node for c in ordered if c.node not in ranks]:
        raise ValueError(
            f"the given ranks of the step '{row.annotation_id}_{row.action_uid}' lack the "
            f"candidate {missing[0]}; they belong to another version of the data"
        )
    return [c for c in ordered if ranks[c.node] < top_k]


def _ranks_by_words(
    goal: str, candidates: Sequence[Candidate], texts: Mapping[str, str]
) -> dict[str, int]:
    """Ranks of nodes by the words that a candidate shares with the goal, weighted by rarity.
    Neither the recorded action nor the right elements are used."""
    asked = set(_words(goal))
    read = [
        _words(" ".join([texts.get(c.node, ""), *map(c.get, _TEXT_ATTRIBUTES)])) for c in candidates
    ]
    pages = Counter(word for words in read for word in set(words))

    def score(candidate: Candidate, words: list[str]) -> float:
        shared = asked.intersection(words)
        rarity = sum(math.log(1 + len(candidates) / pages[word]) for word in shared)
        # A long text shares words with any goal.
        prior = _TAG_PRIORS.get(candidate.tag.lower(), 0.0)
        return rarity / (1 + math.log(1 + len(words))) + 0.5 * prior

    scores = list(map(score, candidates, read))
    best_first = sorted(range(len(scores)), key=lambda k: -scores[k])
    return {candidates[k].node: rank for rank, k in enumerate(best_first)}


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def to_element(index: int, candidate: Candidate, text: str) -> Element:
    """The element of an observation that shows a candidate."""
    get, tag = candidate.get, candidate.tag.lower()
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
        x, y, width, height = (float(part) for part in rectangle.split(","))
        bounds = round(x), round(y), round(x + width), round(y + height)
    except (ValueError, OverflowError):
        return None
    return None if width < 0 or height < 0 else bounds
