"""Leaves parts of a decision out of its prompt, so that a model with a short context can read it.

Past actions are left out first, the oldest before the others; then the reasons in messages, the
last message first; then elements. Elements are kept longest if a message refers to them, if they
are focused or editable, or if their label shares a word with the goal. Among equal ones, those at
the end of the screen are left out first. Elements keep their indices, and the prompt gives the
number of missing ones. The goal is always kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from swarm_ui.errors import ModelError
from swarm_ui.model import Decision, Dropped
from swarm_ui.observation import Element
from swarm_ui.prompts.message_text import LEFT_OUT, reason_of

_SLACK = 0.03
"""The shortening ends when a prompt leaves at most this share of its free tokens unused."""
_WORD = re.compile(r"\w+")
_COMMON = frozenset({
    "a", "an", "and", "are", "at", "by", "for", "from", "in", "into", "is", "it", "of", "on", "or",
    "that", "the", "then", "this", "to", "with", "you", "your",
})  # fmt: skip

P = TypeVar("P")


def shortened(
    decision: Decision, limit: int, write: Callable[[Decision], P], tokens: Callable[[P], int]
) -> tuple[Decision, P]:
    """A decision whose prompt has at most ``limit`` tokens, and the prompt: the unchanged decision
    if its prompt fits, else with more in its ``dropped``.

    Args:
        write: the prompt of a decision as the model reads it, without what its ``dropped`` lists.
        tokens: the number of tokens of such a prompt.

    Raises:
        ModelError: the goal and the fixed text of the format exceed the limit.
    """
    whole = write(decision)
    length = tokens(whole)
    if length <= limit:
        return decision, whole
    order = _order(decision)
    few, most = 0, len(order)  # the first does not fit, the second does
    best = write(_without(decision, order))
    if (least := tokens(best)) > limit:
        raise ModelError(
            f"the prompt has {length} tokens, and {least} without history, reasons and elements; "
            f"at most {limit} may be used. Raise prompt_tokens, if the model accepts more, or "
            "shorten the goal"
        )
    while most - few > 1:
        tried = (few + most) // 2
        prompt = write(_without(decision, order[:tried]))
        unused = limit - tokens(prompt)
        if unused < 0:
            few = tried
            continue
        most, best = tried, prompt
        if unused <= _SLACK * (limit - least):
            break
    return _without(decision, order[:most]), best


def _order(decision: Decision) -> list[tuple[str, int]]:
    """The parts that a prompt may leave out, the first one first: the field of ``Dropped``, and the
    position or index of the part."""
    reasons = [
        position
        for position, heard in reversed([*enumerate(decision.heard)])
        if len(reason_of(heard.content, heard.prompt_format)) > len(LEFT_OUT)
    ]
    goal = _words(decision.observation.goal)
    told = {i for heard in decision.heard if heard.action for i in heard.action.targets}

    def rank(element: Element) -> tuple[bool, int, int, int]:
        needed = int(element.index in told) + int(element.focused)
        shared = len(goal & _words(element.label))
        return bool(needed or shared or element.editable), needed, shared, -element.index

    return [
        *(("history", k) for k in range(len(decision.observation.history))),
        *(("reasons", k) for k in reasons),
        *(("elements", e.index) for e in sorted(decision.observation.elements, key=rank)),
    ]


def _without(decision: Decision, parts: Sequence[tuple[str, int]]) -> Decision:
    def gone(name: str) -> tuple[int, ...]:
        return tuple(sorted(k for field, k in parts if field == name))

    dropped = Dropped(
        history=len(gone("history")), reasons=gone("reasons"), elements=gone("elements")
    )
    return msgspec.structs.replace(decision, dropped=dropped) if parts else decision


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _COMMON
