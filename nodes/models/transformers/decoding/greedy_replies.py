"""Greedy replies to recent prompts, for models whose replies do not depend on the batch.

The agents of a team often ask again in the next round what they asked in this one, because nobody
has changed the proposal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from swarm_ui.nodes.models.transformers.decoding.decoding import Continuation, Row

Key = tuple[str | None, tuple[int, ...], int]
"""Adapter version, prompt, and maximum number of tokens."""


class GreedyReplies:
    """The most recent greedy rows with their continuations."""

    def __init__(self, limit: int) -> None:
        """``limit``: number of rows."""
        self._limit = limit
        self._known: OrderedDict[Key, tuple[Row, Continuation]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        """Remove all rows, since the weights have changed."""
        self._known.clear()

    def find(self, version: str | None, row: Row) -> Continuation | None:
        """The continuation of an equal row."""
        known = self._known.get(_key(version, row))
        # The prompt does not tell everything about the grammar.
        return known[1] if known is not None and known[0].grammar == row.grammar else None

    def add(self, version: str | None, row: Row, found: Continuation) -> None:
        """Keep a greedy row, and remove the oldest ones if there are too many."""
        key = _key(version, row)
        self._known[key] = row, found
        self._known.move_to_end(key)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


def equal_rows(versions: Sequence[str | None], rows: Sequence[Row]) -> list[int]:
    """For each row, the first greedy row that is equal to it; for sampled rows, the row itself."""
    first: dict[Key, int] = {}
    found = []
    for k, (version, row) in enumerate(zip(versions, rows, strict=True)):
        same = k if row.temperature > 0 else first.setdefault(_key(version, row), k)
        found.append(same if rows[same].grammar == row.grammar else k)
    return found


def _key(version: str | None, row: Row) -> Key:
    return version, tuple(row.prompt), row.max_tokens
