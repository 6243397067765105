"""Restricts the embedded agent to the actions on the screen, and to words of its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swarm_ui.nodes.models.tiny_agent.tokenizer import Trie
from swarm_ui.nodes.models.transformers.choosing import Allowed

MAX_FREE_WORDS = 8


@dataclass(frozen=True, slots=True)
class WordGrammar:
    """The replies that are possible on one screen."""

    trie: Trie
    free: tuple[int, ...]
    """Ids of the tokens that free text may use, where the trie allows free text."""
    stops: Sequence[int]

    def begin(self) -> WordCursor:
        """The position before the first token."""
        return WordCursor(self)


class WordCursor:
    """The position of one reply in a grammar."""

    __slots__ = ("_grammar", "_position", "_words")

    def __init__(self, grammar: WordGrammar) -> None:
        self._grammar = grammar
        self._position: Trie | None = grammar.trie  # None: in free text
        self._words = 0  # of free text so far

    def allowed(self) -> Allowed:
        """The tokens that may come next; see
        :class:`~swarm_ui.nodes.models.transformers.choosing.Cursor`."""
        free, stops = self._grammar.free, self._grammar.stops
        if self._position is not None:
            return list(self._position)
        if self._words == 0:
            return free or stops
        return [*free, *stops] if self._words < MAX_FREE_WORDS else stops

    def take(self, token: int) -> None:
        """Append an allowed token; see
        :class:`~swarm_ui.nodes.models.transformers.choosing.Cursor`."""
        if self._position is None:
            self._words += 1
        else:
            self._position = self._position[token]
