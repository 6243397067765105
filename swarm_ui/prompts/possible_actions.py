"""The actions that are possible on a screen, with open texts, for constrained decoding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from swarm_ui.action import ACTION_TYPES, POINTING, ActionType, Direction, GoalStatus
from swarm_ui.model import Decision
from swarm_ui.observation import Element

TextField = Literal["text", "app_name"]

_TAPS: tuple[ActionType, ...] = ("long_press", "double_tap")
_PLAIN: tuple[ActionType, ...] = ("navigate_back", "navigate_home", "keyboard_enter", "wait")
_DEFAULT = tuple(kind for kind in ACTION_TYPES if kind not in (*_TAPS, "select"))
"""The kinds that are offered on a screen that lists none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A possible action. If it takes a text, the text is still open."""

    kind: ActionType | Literal["pass"]
    label: str = ""
    index: int | None = None
    direction: Direction | None = None
    goal_status: GoalStatus | None = None
    text_field: TextField | None = None
    """The field of the action that a text must fill; ``None``: it has no text."""


def possible_actions(decision: Decision) -> Iterator[Choice]:
    """Every action that the screen offers, each once; none on elements that the prompt leaves out.

    Any enabled element can be clicked, because on web pages many clickable elements are not marked
    as such. An agent that sees a part of the screen may also abstain, or repeat actions of others.
    """
    screen = decision.observation
    offered = screen.actions or _DEFAULT
    dropped = frozenset(() if decision.dropped is None else decision.dropped.elements)
    for element in screen.elements:
        if element.enabled and element.index not in dropped:
            for kind in _kinds(element, offered):
                yield _on(kind, element.label, element.index)
    for plain in _PLAIN:
        if plain in offered:
            yield Choice(plain)
    if "open_app" in offered:
        yield Choice("open_app", text_field="app_name")
    if "answer" in offered:
        yield Choice("answer", text_field="text")
    if "scroll" in offered:
        for direction in get_args(Direction):
            yield Choice("scroll", direction=direction)
    if "status" in offered:
        for status in get_args(GoalStatus):
            yield Choice("status", goal_status=status)
    if decision.partial:
        yield Choice("pass")
        yield from _hidden(decision)


def _kinds(element: Element, offered: tuple[str, ...]) -> Iterator[ActionType]:
    if "click" in offered:
        yield "click"
    for kind in _TAPS:
        if kind in offered:
            yield kind
    if element.editable and "input_text" in offered:
        yield "input_text"
    if element.role == "field" and not element.editable and "select" in offered:
        yield "select"


def _on(kind: ActionType, label: str, index: int) -> Choice:
    typed = kind in ("input_text", "select")
    return Choice(kind, label, index, text_field="text" if typed else None)


def _hidden(decision: Decision) -> Iterator[Choice]:
    """Actions of others on elements that this agent does not see."""
    screen, seen = decision.observation, set[tuple[str, int]]()
    for heard in decision.heard:
        action = heard.action
        if action is None or action.index is None or action.action_type not in POINTING:
            continue
        key = (action.action_type, action.index)
        hidden = action.index >= len(screen.elements) and screen.offers(action.action_type)
        if hidden and key not in seen:
            seen.add(key)
            yield _on(action.action_type, action.target or "", action.index)
