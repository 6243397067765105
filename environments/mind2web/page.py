"""Elements of a Mind2Web page: its candidates with their texts from the cleaned HTML."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from xml.parsers import expat

import msgspec

from swarm_ui.environments.mind2web.raw_records import Candidate
from swarm_ui.environments.recorded.web_elements import first_words, role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element

_OPTIONS = 60
"""Maximum number of words of a drop-down list. Its text is its options."""


class Texts(msgspec.Struct, frozen=True):
    """Text and position in the document by node."""

    words: dict[str, str]
    order: dict[str, int]


def read_texts(cleaned_html: str, wanted: Collection[str], where: str) -> Texts:
    """Texts of nodes by ``backend_node_id``, including the texts of their descendants.

    Mind2Web's ``cleaned_html`` is well-formed XML, so a strict and fast parser can read it.

    Raises:
        ConfigError: it is not XML, or it declares entities (which could grow without bound).
    """
    pieces: list[str] = []
    spans: list[tuple[str | None, int]] = []  # open nodes: id if wanted, first piece of text
    words: dict[str, str] = {}
    order: dict[str, int] = {}

    def start(_tag: str, attributes: dict[str, str]) -> None:
        node = attributes.get("backend_node_id")
        if node is not None and node in wanted:
            order.setdefault(node, len(order))
            spans.append((node, len(pieces)))
        else:
            spans.append((None, 0))

    def end(_tag: str) -> None:
        node, first = spans.pop()
        if node is not None:
            words[node] = " ".join(" ".join(pieces[first:]).split())

    def entity(*_: object) -> None:
        raise ConfigError(
            f"{where}: 'cleaned_html' declares XML entities, which are refused because they could "
            "grow without bound"
        )

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = pieces.append
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(cleaned_html, True)
    except expat.ExpatError as error:
        raise ConfigError(
            f"{where}: 'cleaned_html' cannot be read: {error}. Expected the well-formed XML of "
            "Mind2Web's own preprocessing"
        ) from error
    return Texts(words, order)


def in_document_order(candidates: Sequence[Candidate], texts: Texts) -> list[Candidate]:
    """The candidates in the order of the page. Those that are not on it come last, by id.

    The order of the data is not used, because it lists the right candidates first.
    """

    def place(candidate: Candidate) -> tuple[float, int, str]:
        node = candidate.node
        return (texts.order.get(node, math.inf), len(node), node)

    return sorted(candidates, key=place)


def to_element(index: int, candidate: Candidate, text: str, *, words: int) -> Element:
    """The element of an observation that shows a candidate."""
    seen = candidate.attributes
    tag = candidate.tag.lower()
    role = role_of(tag, kind=seen.get("type", ""), aria=seen.get("role", ""))
    field = role in ("field", "area")
    button = seen.get("value", "") if role == "button" else ""
    named = seen.get("aria_label") or seen.get("alt") or seen.get("title") or seen.get("label")
    return Element(
        index=index,
        role=role,
        text=first_words(text or button, _OPTIONS if tag == "select" else words),
        description=first_words(named or ("" if text else seen.get("name", "")), words),
        hint=first_words(seen.get("placeholder", ""), words),
        value=_value(seen) if field else None,
        checked=_flag(seen, "input_checked", "checked", "aria_checked"),
        selected=_flag(seen, "option_selected", "aria_selected"),
        editable=field and tag != "select",
        bounds=_bounds(seen.get("bounding_box_rect", "")),
    )


def _value(attributes: Mapping[str, str]) -> str:
    names = ("input_value", "text_value", "value")
    return next((attributes[name] for name in names if attributes.get(name)), "")


def _flag(attributes: Mapping[str, str], *names: str) -> bool | None:
    for name in names:
        if name in attributes:
            return attributes[name].lower() not in ("false", "0")
    return None


def _bounds(rectangle: str) -> tuple[int, int, int, int] | None:
    """Bounds from ``x,y,width,height``. Mind2Web writes -1 for an unknown value."""
    try:
        x, y, width, height = (float(part) for part in rectangle.split(","))
    except ValueError:
        return None
    if not all(map(math.isfinite, (x, y, width, height))) or width < 0 or height < 0:
        return None
    return round(x), round(y), round(x + width), round(y + height)
