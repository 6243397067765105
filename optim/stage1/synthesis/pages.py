"""Samples of level 2 of stage 1 on invented web pages: the parts that all families share.

A page ends the task by itself, so a plan has no step that ends it. The families in
:mod:`.clicking` and :mod:`.filling` cover kinds of instruction (click a named element, fill a form,
choose from a list, look up a value …), not any real page.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.observation import Role
from swarm_ui.optim.stage1.synthesis.random_words import WordSampler
from swarm_ui.optim.stage1.synthesis.screens import Widget

NAMES: dict[str, tuple[str, ...]] = {
    "button": ("button",),
    "link": ("link",),
    "item": ("item", "folder", "entry", "option", "menu item"),
    "icon": ("icon", "button"),
    "heading": ("section", "heading"),
    "tab": ("tab",),
    "text": ("text",),
    "label": ("label",),
    "cell": ("cell",),
    "shape": ("shape",),
    "image": ("image",),
    "checkbox": ("checkbox",),
    "switch": ("switch",),
    "radio": ("radio button", "radio", "option"),
    "option": ("option", "item"),
    "field": ("text field", "textbox", "text input", "field", "input", "input field"),
    "area": ("textarea", "text area"),
}
"""Names that an instruction may use for an element of a role."""

VERBS = (
    "Click", "Click on", "Press", "Tap", "Select", "Choose", "Find and click on", "Hit",
    "Find and click", "Go to", "Open", "Mark", "Pick",
)  # fmt: skip

_DISTRACTOR_ROLES: tuple[Role, ...] = (
    "button", "link", "item", "text", "text", "label", "cell", "heading", "icon", "field", "area",
    "checkbox", "radio", "option", "shape", "tab", "switch",
)  # fmt: skip


def distractors(
    words: WordSampler, count: int, roles: Sequence[Role] | None = None
) -> list[Widget]:
    """Elements that the instruction does not mention."""
    return [_distractor(words, words.rng.choice(roles or _DISTRACTOR_ROLES)) for _ in range(count)]


def _distractor(words: WordSampler, role: Role) -> Widget:
    rng = words.rng
    long = role == "text" and rng.random() < 0.4
    label = words.sentence(3, 9) if long else words.phrase()
    if role in ("field", "area"):
        value = "" if rng.random() < 0.7 else words.any_word()
        return Widget(role, "" if rng.random() < 0.5 else label, value=value)
    if role in ("checkbox", "radio", "option", "switch"):
        return Widget(role, label, checked=rng.random() < 0.2)
    marked = role in ("link", "heading", "tab") and rng.random() < 0.2
    return Widget(role, label, checked=rng.random() < 0.5 if marked else None)


def widget(role: Role, label: str) -> Widget:
    """An element in its initial state: an empty field, an unchecked box, a plain button."""
    if role in ("field", "area"):
        return Widget(role, label, value="")
    if role in ("checkbox", "radio", "option", "switch"):
        return Widget(role, label, checked=False)
    return Widget(role, label)


def submit_button(words: WordSampler) -> Widget:
    known = ("Submit", "Submit", "Search", "Login", "OK", "Done", "Next", "Send", "Save")
    return Widget("button", words.word() if words.rng.random() < 0.3 else words.rng.choice(known))


def submit_phrase(rng: random.Random, button: Widget, words: WordSampler) -> str:
    """The part of an instruction that asks for the button."""
    verb = rng.choice(("and press", "and hit", "and click", "then click", "click on", "then press"))
    name = button.label if rng.random() < 0.7 else words.quoted(button.label)
    return f"{verb} {rng.choice(('', 'the '))}{name}{rng.choice(('', ' button'))}"


def role_name(rng: random.Random, role: str) -> str:
    return rng.choice(NAMES[role])
