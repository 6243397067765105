"""The actions that are possible on a screen, with open texts, for constrained decoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from swarm_ui.action import ACTION_TYPES, POINTING, Abstain, Action, Direction, GoalStatus
from swarm_ui.model import Decision
from swarm_ui.observation import Element
from swarm_ui.prompts.prompt_format import FreeText, Reply

OPEN = "\U00010600"
"""Stands for a text that is still to be written: a printable character that nobody uses."""

_TAPS = ("long_press", "double_tap")
_TYPED = ("input_text", "select")
_DEFAULT = tuple(kind for kind in ACTION_TYPES if kind not in (*_TAPS, "select"))
"""The kinds that are offered on a screen that lists none."""
_PLAIN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("navigate_back", {}), ("navigate_home", {}), ("keyboard_enter", {}), ("wait", {}),
    ("open_app", {"app_name": OPEN}),
    ("answer", {"text": OPEN}),
    *(("scroll", {"direction": direction}) for direction in get_args(Direction)),
    *(("status", {"goal_status": status}) for status in get_args(GoalStatus)),
)  # fmt: skip
"""The actions without an element."""


def possible_actions(decision: Decision) -> Iterator[Action | Abstain]:
    """Every action that the screen offers, each once, with :data:`OPEN` for a text; none on
    elements that the prompt leaves out.

    Any enabled element can be clicked, because on web pages many clickable elements are not marked
    as such. An agent that sees a part of the screen may also abstain, or repeat actions of others.
    """
    screen = decision.observation
    offered = screen.actions or _DEFAULT
    dropped = frozenset(() if decision.dropped is None else decision.dropped.elements)
    for element in screen.elements:
        if element.enabled and element.index not in dropped:
            for kind in _kinds(element):
                if kind in offered:
                    yield _on(kind, element.label, element.index)
    for kind, fields in _PLAIN:
        if kind in offered:
            yield Action(action_type=kind, **fields)  # type: ignore[arg-type]
    if decision.partial:
        yield Abstain()
        yield from _hidden(decision)


def _kinds(element: Element) -> tuple[str, ...]:
    if element.editable:
        return ("click", *_TAPS, "input_text")
    return ("click", *_TAPS, "select") if element.role == "field" else ("click", *_TAPS)


def _on(kind: str, label: str | None, index: int) -> Action:
    return Action(
        action_type=kind,  # type: ignore[arg-type]
        target=label or None, index=index, text=OPEN if kind in _TYPED else None,
    )  # fmt: skip


def _hidden(decision: Decision) -> Iterator[Action]:
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
            yield _on(action.action_type, action.target, action.index)


def opened(text: str, free: FreeText) -> Reply:
    """A written action as a reply, with ``free`` in place of its open text."""
    before, found, after = text.rpartition(OPEN)
    if not found:
        return (text,)
    return (before, free, after) if after else (before, free)
