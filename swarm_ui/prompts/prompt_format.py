"""What a format of prompts is, and the replies that are possible on a screen.

- :class:`~swarm_ui.prompts.json_format.JsonFormat` (``"json"``): instructions and JSON actions, for
  large models that were not trained for this.
- :class:`~swarm_ui.prompts.compact_format.CompactFormat` (``"compact"``): about 90 tokens for a
  screen of the core phone, for models that were trained on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, get_args

from swarm_ui.action import (
    ACTION_TYPES,
    POINTING,
    Abstain,
    Action,
    Direction,
    GoalStatus,
    Unparsed,
)
from swarm_ui.model import ChatMessage, Decision
from swarm_ui.observation import Observation

OPEN = "\U00010600"
"""Stands for a text that is still to be written: a printable character that nobody uses."""

TEXT_TOKENS = 24
"""Maximum number of tokens of a text in an action, where decoding is constrained."""

_TAPS = ("long_press", "double_tap")
_DEFAULT = tuple(kind for kind in ACTION_TYPES if kind not in (*_TAPS, "select"))
"""The kinds that are offered on a screen that lists none."""
_PLAIN: tuple[dict[str, Any], ...] = (
    *({"action_type": k} for k in ("navigate_back", "navigate_home", "keyboard_enter", "wait")),
    {"action_type": "open_app", "app_name": OPEN},
    {"action_type": "answer", "text": OPEN},
    *({"action_type": "scroll", "direction": side} for side in get_args(Direction)),
    *({"action_type": "status", "goal_status": status} for status in get_args(GoalStatus)),
)
"""The actions without an element."""


class FreeText(NamedTuple):
    """A part of a reply that the model writes freely."""

    max_tokens: int
    without: str = "\n"
    """Characters that it may not contain."""


Reply = tuple[str | FreeText, ...]
"""A reply: literal parts, and free ones between them. No two literal parts are adjacent."""


class PromptFormat(Protocol):
    """A form of prompts and replies."""

    @property
    def name(self) -> str: ...

    def chat(self, decision: Decision) -> tuple[ChatMessage, ...]:
        """The context of one agent, which is asked for one action."""
        ...

    def write(self, action: Action | Abstain, observation: Observation, reason: str = "") -> str:
        """The text of a reply. :meth:`parse` reads its action.

        ``observation``: the screen as the agent sees it, with the indices of the action;
        ``reason``: one line, in which line breaks become spaces.
        """
        ...

    def parse(
        self, reply: str, observation: Observation, *, partial: bool = False
    ) -> Action | Abstain | Unparsed:
        """The action of a reply, in the indices of ``observation``.

        Its element may not exist: that is for the caller to check. With ``partial`` the agent sees
        only a part of the screen, and may abstain.
        """
        ...

    def replies(self, decision: Decision) -> list[Reply]:
        """Every possible reply in this context, for constrained decoding."""
        ...


def possible_actions(decision: Decision) -> Iterator[Action | Abstain]:
    """Every action that the screen offers, each once, with :data:`OPEN` for a text; none on
    elements that the prompt leaves out.

    Any enabled element can be clicked, because on web pages many clickable elements are not marked
    as such. An agent that sees a part of the screen may also abstain, or repeat actions of others
    on elements that it does not see.
    """
    screen = decision.observation
    offered = screen.actions or _DEFAULT
    dropped = frozenset(() if decision.dropped is None else decision.dropped.elements)
    for element in screen.elements:
        if element.enabled and element.index not in dropped:
            typed = "input_text" if element.editable else "select"
            fits = element.editable or element.role == "field"
            for kind in ("click", *_TAPS, *([typed] if fits else ())):
                if kind in offered:
                    yield _on(kind, element.label, element.index)
    for fields in _PLAIN:
        if fields["action_type"] in offered:
            yield Action(**fields)
    if decision.partial:
        yield Abstain()
        hidden = dict[tuple[str, int], str | None]()
        for act in (heard.action for heard in decision.heard):
            if act is not None and act.index is not None and act.action_type in POINTING:
                hidden.setdefault((act.action_type, act.index), act.target)
        for (kind, index), target in hidden.items():
            if index >= len(screen.elements) and screen.offers(kind):
                yield _on(kind, target, index)


def _on(kind: str, label: str | None, index: int) -> Action:
    text = OPEN if kind in ("input_text", "select") else None
    fields: dict[str, Any] = {"action_type": kind, "target": label or None, "index": index}
    return Action(**fields, text=text)


def opened(text: str, without: str = "\n") -> Reply:
    """A written action as a reply, with a free part in place of its open text."""
    before, found, after = text.rpartition(OPEN)
    if not found:
        return (text,)
    free = FreeText(TEXT_TOKENS, without)
    return (before, free, after) if after else (before, free)
