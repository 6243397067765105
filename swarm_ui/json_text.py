"""JSON objects inside free text, as language models write them. Nothing is ever evaluated.

The text may be hostile, so each of its characters is read a bounded number of times.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

LONGEST = 65_536
"""Maximum number of characters of a text; in a longer one nothing is found."""
DEEPEST = 64
"""Maximum number of nesting levels that are parsed."""
_SHORT, _KEPT = 1_000, 4_096
"""Maximum number of characters of texts whose objects are kept, and of such texts."""

_TOKEN = re.compile(
    r"""[ \t\n\r]*+(?:
      (?P<mark>[{}\[\],:])
    | (?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
    | (?P<value>true|false|null|NaN|-?Infinity
        |-?(?:0|[1-9][0-9]{0,399}+)(?![0-9])(?:\.[0-9]{1,400}+)?(?:[eE][-+]?[0-9]{1,400}+)?)
    )""",
    re.VERBOSE,
)  # possessive quantifiers, so that a failed match does not backtrack
_NEXT = {
    ("{", "string"): ":", ("{", "}"): "end", (":", ":"): "value", (",key", "string"): ":",
    ("[", "]"): "end", ("after{", ","): ",key", ("after[", ","): "value", ("after{", "}"): "end",
    ("after[", "]"): "end",
}  # fmt: skip
"""The state after a token, for tokens that are not values; "end" closes a container."""


class Found(NamedTuple):
    """A JSON object and its position: ``text[start:end]``."""

    value: dict[str, object]
    start: int
    end: int


def objects(text: str) -> Iterator[Found]:
    """The top-level JSON objects of ``text``, in order; anything else is skipped.

    >>> [found.value for found in objects('so {"a": 1} or {oops} or {"b": {"c": 2}}')]
    [{'a': 1}, {'b': {'c': 2}}]
    """
    places = _places(text) if len(text) > _SHORT else _known_places(text)
    for start, end in places:
        yield Found(json.loads(text[start:end]), start, end)


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each top-level object."""
    ends: dict[int, int | None] = {}
    at = text.find("{") if len(text) <= LONGEST else -1
    while at != -1:
        if at not in ends:
            _scan(text, at, ends)
        end = ends[at]
        if end is not None:
            yield at, end
        at = text.find("{", at + 1 if end is None else end)


@lru_cache(maxsize=_KEPT)
def _known_places(text: str) -> tuple[tuple[int, int], ...]:
    """The result of :func:`_places`, which is cached for short texts: a reply is read several
    times, by its agent, its receivers and its critic."""
    return tuple(_places(text))


def last_object(text: str) -> Found | None:
    """The last top-level JSON object of ``text``, or ``None``."""
    last = deque(objects(text), maxlen=1)
    return last[0] if last else None


def encodable(text: str) -> str:
    """The text with ``?`` in place of each lone surrogate, which JSON may name and no file can
    hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _scan(text: str, start: int, ends: dict[int, int | None]) -> None:
    """Find the ends of the object at ``start`` and of the objects and arrays inside it; ``None``:
    it is not valid. No container is scanned twice, because ``ends`` caches the results."""
    open_, at, state = [start], start + 1, "{"
    while open_ and (token := _TOKEN.match(text, at)):
        at, kind, mark = token.end(), token.lastgroup, token["mark"]
        following = _NEXT.get((state, mark or str(kind)))
        if following is None and state in ("value", "["):
            if mark in ("{", "["):
                begin = at - 1
                if begin not in ends and len(open_) < DEEPEST:
                    open_.append(begin)
                    state = mark
                    continue
                end = ends.get(begin)
                if end is None:
                    break
                at = end
            elif mark is not None:
                break
            following = "after"
        elif following == "end":
            ends[open_.pop()] = at
            following = "after"
        if following is None:
            break
        state = f"after{text[open_[-1]]}" if following == "after" and open_ else following
    ends.update(dict.fromkeys(open_))
