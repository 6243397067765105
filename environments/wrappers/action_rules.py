"""Rules about actions: their words, the texts that are searched, and the pressed elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.wrappers.text_folding import contains_word
from swarm_ui.observation import Element, Observation

Place = Literal["label", "app", "text"]

_PRESSES = frozenset({"click", "double_tap", "long_press", "select", "swipe", "input_text",
                      "keyboard_enter"})  # fmt: skip
"""Kinds of actions that press the element at their place; typing clicks on it first."""
_TYPES = frozenset({"input_text", "select", "answer"})
_ENTER_KEYS = ("ENTER", "DPAD_CENTER", "SPACE")
LEAVES = frozenset({"navigate_back", "navigate_home", "open_app", "wait", "status", "answer"})
"""Actions that are possible in a refused app."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Words that make an action match, in any spelling.

    A star matches any ending: ``"delet*"``. For the spellings that count as the same word see
    :mod:`swarm_ui.environments.wrappers.text_folding`. In doubtful cases a word matches.
    """

    name: str
    """Name of the rule, shown in the note of a refusal."""
    words: tuple[str, ...]
    on: tuple[Place, ...] = ("label",)
    """Texts in which the words are searched. ``label``: the element that is pressed (click, taps,
    select, Enter, or typing into an element that is no field). ``app``: the current app or URL, or
    the one to open. ``text``: typed, selected or answered text."""

    def word_in(self, text: str) -> str:
        """The first word that occurs in ``text``, or an empty string."""
        return next((word for word in self.words if contains_word(word, text)), "") if text else ""


PAYMENT = Rule(
    name="payment",
    words=(
        *("pay", "pays", "payment*", "buy", "purchas*", "checkout", "order now", "place order"),
        *("confirm order", "subscribe", "donat*", "transfer money", "send money", "top up"),
        *("book now", "rent now", "add card", "withdraw*", "💳", "💸", "💰"),
    ),
)
DELETION = Rule(
    name="deletion",
    words=(
        *("delet*", "remov*", "eras*", "wipe*", "clear all", "clear data", "empty trash", "trash"),
        *("factory reset", "reset phone", "uninstall*", "discard*", "format", "🗑"),
        *("empty bin", "move to bin", "close account", "unlink", "destroy*", "purg*"),
    ),
)
SENDING = Rule(
    name="sending",
    words=(
        *("send", "sends", "resend", "reply all", "forward", "post", "publish*", "share"),
        *("tweet", "submit*", "broadcast*", "call", "dial", "📤", "✉", "📨", "📞"),
    ),
)


Match = tuple[str, str]
"""The name of a rule that applies to an action, and why."""


def first_match(rules: Sequence[Rule], action: Action, screen: Observation) -> Match | None:
    """The first rule that applies to an action on a screen."""
    return next((m for rule in rules for m in _matches(rule, action, screen)), None)


def presses(action: Action) -> bool:
    """Whether an action presses Enter or another key that activates an element (Space, the centre
    of the D-pad), or has a line break in its text."""
    if action.action_type == "keyboard_enter":
        return True
    if any(key in (action.keycode or "").upper() for key in _ENTER_KEYS):
        return True
    return action.action_type == "input_text" and bool({"\n", "\r"} & set(action.text or ""))


def _matches(rule: Rule, action: Action, screen: Observation) -> Iterator[Match]:
    if "label" in rule.on:
        yield from _pressed(rule, action, screen)
    if "app" in rule.on:
        yield from _in_app(rule, action, screen)
    typed = action.text or ""
    if "text" in rule.on and action.action_type in _TYPES and (word := rule.word_in(typed)):
        yield rule.name, f"the text “{typed}” matches “{word}”"


def _pressed(rule: Rule, action: Action, screen: Observation) -> Iterator[Match]:
    candidates = list(_meant(action, screen))
    if presses(action):
        candidates += _entered(screen)
    for element in candidates:
        if word := _denied(rule, element):
            yield rule.name, f"“{element.label}” matches “{word}”"
    if action.action_type == "select" and (word := rule.word_in(action.text or "")):
        yield rule.name, f"the option “{action.text}” matches “{word}”"
    pixels = action.x is not None or action.to_x is not None
    if pixels and action.action_type in _PRESSES:
        for element in screen.elements:
            if element.bounds is None and _denied(rule, element):
                why = f"“{element.label}” may be there: it has no bounds"
                yield rule.name, f"an action by pixels is refused, because {why}"


def _meant(action: Action, screen: Observation) -> Iterator[Element]:
    """The elements that an action may press: at its place, and at the end of a swipe."""
    if action.action_type not in _PRESSES:
        return
    ends = ((action.index, action.x, action.y), (action.to_index, action.to_x, action.to_y))
    for index, x, y in ends:
        target = screen.element(index)
        if target is not None:
            yield target
            if target.bounds is not None:
                left, top, right, bottom = target.bounds
                x, y = (left + right) // 2, (top + bottom) // 2
        if x is not None and y is not None:
            yield from _under(x, y, screen)


def _under(x: int, y: int, screen: Observation) -> Iterator[Element]:
    """The clickable elements at a point, without dialogs and scrollable areas."""
    for element in screen.elements:
        if element.bounds is None or element.role == "dialog" or element.scrollable:
            continue
        left, top, right, bottom = element.bounds
        if element.clickable and left <= x <= right and top <= y <= bottom:
            yield element


def _entered(screen: Observation) -> Iterator[Element]:
    """The elements that Enter may press: those in focus and, if a field or nothing is in focus, all
    buttons."""
    focused = [element for element in screen.elements if element.focused]
    yield from focused
    if not focused or any(element.editable for element in focused):
        yield from (e for e in screen.elements if e.role in ("button", "link", "icon", "image"))


def _denied(rule: Rule, element: Element) -> str:
    """The word of the rule on an element; a click on an editable element is harmless."""
    if element.editable:
        return ""
    texts = (element.text, element.description, element.hint, element.value or "")
    return next((word for text in texts if (word := rule.word_in(text))), "")


def _in_app(rule: Rule, action: Action, screen: Observation) -> Iterator[Match]:
    opened = opens(action, screen)
    if opened and (word := rule.word_in(opened)):
        yield rule.name, f"the app “{opened}” matches “{word}”"
    if action.action_type in LEAVES:
        return
    if word := rule.word_in(screen.app):
        yield rule.name, f"“{screen.app}” is in front and matches “{word}”"


def opens(action: Action, screen: Observation) -> str:
    """The name of the app that an action opens, or an empty string."""
    if action.action_type == "open_app":
        return action.app_name or ""
    icons = [e.label for e in _meant(action, screen) if e.role == "app"]
    return icons[0] if icons else ""
