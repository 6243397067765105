"""A notation for many wordings of one text.

``[a|b]`` stands for one of its alternatives, which may be empty and may contain brackets.
Placeholders such as ``{title}`` stay as they are.

>>> sorted(expansions("[delete|remove] [the |]{record}"))
['delete the {record}', 'delete {record}', 'remove the {record}', 'remove {record}']
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache

from swarm_ui.errors import ConfigError

Sequence = tuple["str | tuple[Sequence, ...]", ...]
"""Texts and, as tuples, alternatives, each a sequence of its own."""


def draw(wording: str, rng: random.Random) -> str:
    """A random text; every choice is uniform over its alternatives."""
    return "".join(_drawn(_parse(wording), rng))


def expansions(wording: str) -> Iterator[str]:
    """All texts of the notation; equal texts may occur more than once."""
    return _expanded(_parse(wording))


def _drawn(parts: Sequence, rng: random.Random) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        else:
            yield from _drawn(part[int(rng.random() * len(part))], rng)


def _expanded(parts: Sequence) -> Iterator[str]:
    if not parts:
        yield ""
        return
    first, rest = parts[0], parts[1:]
    heads = [first] if isinstance(first, str) else [t for one in first for t in _expanded(one)]
    tails = list(_expanded(rest))
    yield from (head + tail for head in heads for tail in tails)


@lru_cache(maxsize=4096)
def _parse(wording: str) -> Sequence:
    parts, end = _sequence(wording, 0)
    if end != len(wording):
        raise ConfigError(f"wording: unexpected {wording[end]!r} at {end} in {wording!r}")
    return parts


def _sequence(text: str, at: int) -> tuple[Sequence, int]:
    """The parts from ``at`` to the end of this alternative, and where that is."""
    parts: list[str | tuple[Sequence, ...]] = []
    start = at
    while at < len(text) and text[at] not in "|]":
        if text[at] != "[":
            at += 1
            continue
        parts.append(text[start:at])
        choices = []
        while True:
            choice, at = _sequence(text, at + 1)
            choices.append(choice)
            if at >= len(text):
                raise ConfigError(f"wording: a bracket is not closed in {text!r}")
            if text[at] == "]":
                break
        parts.append(tuple(choices))
        at = start = at + 1
    parts.append(text[start:at])
    return tuple(part for part in parts if part != ""), at
