"""Leaves parts of a decision out of its prompt, so that a model with a short context can read it.

Past actions are left out first, the oldest before the others; then the reasons in messages, the
last message first; then elements. Elements are kept longest if a message refers to them, if they
are focused or editable, or if their label shares a word with the goal. Among equal ones, those at
the end of the screen are left out first. Elements keep their indices, and the prompt gives the
number of missing ones. The goal is always kept.

Tokens are counted for a few prompts only: the next prompt to try is estimated from the lengths in
characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from swarm_ui.errors import ModelError
from swarm_ui.model import ChatMessage, Decision, Dropped
from swarm_ui.observation import Element
from swarm_ui.prompts.message_text import LEFT_OUT, reason_of

_SLACK = 0.03
"""The shortening ends when a prompt leaves at most this share of the allowed tokens unused."""
_GUESSES = 4
"""After this many estimates, the range of prompts is halved instead."""
_WORD = re.compile(r"\w+")
_COMMON = frozenset({
    "a", "an", "and", "are", "at", "by", "for", "from", "in", "into", "is", "it", "of", "on", "or",
    "that", "the", "then", "this", "to", "with", "you", "your",
})  # fmt: skip

Chat = tuple[ChatMessage, ...]
P = TypeVar("P")


def shortened(
    decision: Decision,
    limit: int,
    chat: Callable[[Decision], Chat],
    read: Callable[[Chat], P],
    tokens: Callable[[P], int],
) -> tuple[Decision, P]:
    """A decision whose prompt has at most ``limit`` tokens, and the prompt.

    Args:
        decision: the parts in its ``dropped`` are left out too.
        limit: number of tokens.
        chat: writes the prompt of a decision. What ``Decision.dropped`` lists is not written.
        read: the prompt as the model reads it.
        tokens: the number of tokens of such a prompt.

    Returns:
        The unchanged decision if its prompt fits; else the decision with ``dropped``.

    Raises:
        ModelError: the goal and the fixed text of the format exceed the limit.
    """
    return _Search(decision, limit, chat, read, tokens).result()


class _Search(Generic[P]):
    """Finds the number of parts to leave out."""

    def __init__(
        self,
        decision: Decision,
        limit: int,
        chat: Callable[[Decision], Chat],
        read: Callable[[Chat], P],
        tokens: Callable[[P], int],
    ) -> None:
        self._decision, self._limit = decision, limit
        self._chat, self._read, self._tokens = chat, read, tokens
        self._chats: dict[int, Chat] = {}

    def result(self) -> tuple[Decision, P]:
        whole = self._read(self._chat(self._decision))
        length = self._tokens(whole)
        if length <= self._limit:
            return self._decision, whole
        self._order = _Order(self._decision)
        few, most = 0, self._order.parts  # the first does not fit, the second does
        best = self._read(self._written(most))
        least = self._tokens(best)
        if least > self._limit:
            raise ModelError(
                f"the prompt has {length} tokens, and {least} without history, reasons and "
                f"elements; at most {self._limit} may be used. Raise prompt_tokens, if the model "
                "accepts more, or shorten the goal"
            )
        ends = {few: length, most: least}
        slack = _SLACK * (self._limit - least)
        for guesses in range(self._order.parts):
            if most - few <= 1 or self._limit - least <= slack:
                break
            middle = (few + most) // 2
            tried = self._estimate(few, most, ends) if guesses < _GUESSES else middle
            prompt = self._read(self._written(tried))
            ends[tried] = self._tokens(prompt)
            if ends[tried] <= self._limit:
                most, best, least = tried, prompt, ends[tried]
            else:
                few = tried
        return self._order.without(most), best

    def _estimate(self, few: int, most: int, tokens: dict[int, int]) -> int:
        """The estimated minimal number of parts to leave out, between two bounds."""
        high, low = self._characters(few), self._characters(most)
        share = (self._limit - tokens[most]) / max(1, tokens[few] - tokens[most])
        wanted = low + share * (high - low)
        first, last = few + 1, most - 1
        while first < last:
            middle = (first + last) // 2
            if self._characters(middle) <= wanted:
                last = middle
            else:
                first = middle + 1
        return first

    def _characters(self, parts: int) -> int:
        return sum(len(turn.content) for turn in self._written(parts))

    def _written(self, parts: int) -> Chat:
        if parts not in self._chats:
            self._chats[parts] = self._chat(self._order.without(parts))
        return self._chats[parts]


class _Order:
    """The parts of a decision that a prompt may leave out, in order."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        self._before = decision.dropped or Dropped()
        self._history = max(0, len(decision.observation.history) - self._before.history)
        self._reasons = [
            position
            for position, heard in reversed([*enumerate(decision.heard)])
            if position not in self._before.reasons
            and len(reason_of(heard.content, heard.prompt_format)) > len(LEFT_OUT)
        ]
        gone = frozenset(self._before.elements)
        rank = _Rank(decision)
        left = [e for e in decision.observation.elements if e.index not in gone]
        left.sort(key=lambda element: (*rank(element), -element.index))
        self._elements = [element.index for element in left]

    @property
    def parts(self) -> int:
        return self._history + len(self._reasons) + len(self._elements)

    def without(self, parts: int) -> Decision:
        """The decision without the first ``parts`` of them."""
        before = self._before
        if parts == 0:
            return self._decision
        history = min(parts, self._history)
        reasons = self._reasons[: parts - history]
        elements = self._elements[: parts - history - len(reasons)]
        dropped = Dropped(
            history=before.history + history,
            reasons=tuple(sorted((*before.reasons, *reasons))),
            elements=tuple(sorted((*before.elements, *elements))),
        )
        return msgspec.structs.replace(self._decision, dropped=dropped)


class _Rank:
    """The priority of an element."""

    def __init__(self, decision: Decision) -> None:
        self._goal = _words(decision.observation.goal)
        self._told = {i for h in decision.heard if h.action is not None for i in h.action.targets}

    def __call__(self, element: Element) -> tuple[bool, int, int]:
        """A key that is greater for elements that are kept longer."""
        needed = int(element.index in self._told) + int(element.focused)
        shared = len(self._goal & _words(element.label))
        return bool(needed or shared or element.editable), needed, shared


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _COMMON
