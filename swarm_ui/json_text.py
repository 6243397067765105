"""JSON objects inside free text, as language models write them. Nothing is ever evaluated.

The text may be hostile, so its length, the depth of objects and the number of attempts are bounded.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 65_536
"""Maximum number of characters of a text; in a longer one nothing is found."""
DEEPEST = 64
"""Maximum number of levels of an object."""
_MOST_FAILED = 256
"""Maximum number of places of a text at which an object seems to begin, and none does."""
_DECODER = json.JSONDecoder()


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
    if len(text) > LONGEST:
        return
    at, failed = text.find("{"), 0
    while at != -1 and failed < _MOST_FAILED:
        try:
            value, end = _DECODER.raw_decode(text, at)
            if _levels(value) > DEEPEST:
                raise ValueError
        except (ValueError, RecursionError):
            failed, end = failed + 1, at + 1
        else:
            yield Found(value, at, end)
        at = text.find("{", end)


def last_object(text: str) -> Found | None:
    """The last top-level JSON object of ``text``, or ``None``."""
    last = deque(objects(text), maxlen=1)
    return last[0] if last else None


def encodable(text: str) -> str:
    """The text with ``?`` in place of each lone surrogate, which JSON may name and no file can
    hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _levels(value: object) -> int:
    if not isinstance(value, dict | list):
        return 0
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_levels, parts), default=0)
