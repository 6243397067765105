"""JSON objects inside free text, as language models write them. Nothing is ever evaluated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple


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
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at != -1:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # also an integer of too many digits
            at = text.find("{", at + 1)
            continue
        yield Found(value, at, end)
        at = text.find("{", end)


def last_object(text: str) -> Found | None:
    """The last top-level JSON object of ``text``, or ``None``."""
    found = None
    for found in objects(text):  # noqa: B007  (the last one is what is wanted)
        pass
    return found
