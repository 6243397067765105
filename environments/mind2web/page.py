"""A Mind2Web page: its candidates with their texts, the shown ones, and their elements."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from xml.etree import ElementTree

from swarm_ui.environments.mind2web.files import Candidate
from swarm_ui.environments.recorded.web_elements import first_words, role_of
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element

_WORDS, _OPTIONS = 12, 60
"""Maximum number of words of an element's text, and of a drop-down list, whose text is its
options."""
_WORD = re.compile(r"\w+")
_TEXT_ATTRIBUTES = (
    "aria_label", "placeholder", "title", "alt", "label", "name", "value", "input_value",
)  # fmt: skip
_TAG_PRIORS = {"a": 1.0, "button": 1.0, "input": 1.0, "select": 1.0, "textarea": 1.0, "option": 0.5}


def read_texts(cleaned_html: str, wanted: Collection[str]) -> dict[str, str]:
    """Texts of nodes by ``backend_node_id``, in the order of the page. A text includes those of
    the node's descendants.

    Raises:
        ConfigError: it is not the well-formed XML that Mind2Web has, or it declares a document
            type, whose entities could grow without bound.
    """
    if "<!DOCTYPE" in cleaned_html:
        raise ConfigError("'cleaned_html' declares a document type, which is refused")
    try:
        root = ElementTree.fromstring(cleaned_html)
    except ElementTree.ParseError as error:
        raise ConfigError(
            f"'cleaned_html' is not the well-formed XML of Mind2Web: {error}"
        ) from error
    marked = ((node.get("backend_node_id", ""), node) for node in root.iter())
    return {
        name: " ".join(" ".join(node.itertext()).split()) for name, node in marked if name in wanted
    }


def in_page_order(candidates: Sequence[Candidate], texts: Mapping[str, str]) -> list[Candidate]:
    """The candidates in the order of the page. Those that are not on it come last, by id.

    The order of the data is not used, because it lists the right candidates first.
    """
    place = {node: index for index, node in enumerate(texts)}
    return sorted(candidates, key=lambda c: (place.get(c.node, math.inf), len(c.node), c.node))


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
        checked=_flag(candidate, "input_checked", "checked", "aria_checked"),
        selected=_flag(candidate, "option_selected", "aria_selected"),
        editable=field and tag != "select",
        bounds=_bounds(get("bounding_box_rect")),
    )


def _flag(candidate: Candidate, *names: str) -> bool | None:
    given = [value for name in names if (value := candidate.attributes.get(name)) is not None]
    return str(given[0]).lower() not in ("false", "0") if given else None


def _bounds(rectangle: str) -> tuple[int, int, int, int] | None:
    """Bounds from ``x,y,width,height``. Mind2Web writes -1 for an unknown value."""
    try:
        x, y, width, height = (float(part) for part in rectangle.split(","))
        bounds = round(x), round(y), round(x + width), round(y + height)
    except (ValueError, OverflowError):
        return None
    return None if width < 0 or height < 0 else bounds


def ranks_by_words(
    goal: str, candidates: Sequence[Candidate], texts: Mapping[str, str]
) -> dict[str, int]:
    """Ranks of nodes by the words that a candidate shares with the goal, weighted by rarity.

    They are much worse than those of Mind2Web's trained ranker: they prune many right elements,
    and those steps count as wrong. Neither the recorded action nor the right elements are used.
    """
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
