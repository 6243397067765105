"""Level 2 on invented web pages: shared parts, and the list of families.

A page ends by itself, so a plan never says it is done. The families cover kinds of instruction
(click what is named, fill a form, choose from a list, look something up …), not any real page.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarm_ui.observation import Role
from swarm_ui.optim.stage1.synthesis.random_words import Bag
from swarm_ui.optim.stage1.synthesis.scene import Draft

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
"""What an instruction may call an element of a role."""

VERBS = (
    "Click", "Click on", "Press", "Tap", "Select", "Choose", "Find and click on", "Hit",
    "Find and click", "Go to", "Open", "Mark", "Pick",
)  # fmt: skip

_CLUTTER: tuple[Role, ...] = (
    "button", "link", "item", "text", "text", "label", "cell", "heading", "icon", "field", "area",
    "checkbox", "radio", "option", "shape", "tab", "switch",
)  # fmt: skip


def clutter(bag: Bag, count: int, roles: Sequence[Role] | None = None) -> list[Draft]:
    """Elements that have nothing to do with the instruction."""
    return [_clutter(bag, bag.rng.choice(roles or _CLUTTER)) for _ in range(count)]


def _clutter(bag: Bag, role: Role) -> Draft:
    rng = bag.rng
    long = role == "text" and rng.random() < 0.4
    label = bag.sentence(3, 9) if long else bag.phrase()
    if role in ("field", "area"):
        value = "" if rng.random() < 0.7 else bag.any_word()
        return Draft(role, "" if rng.random() < 0.5 else label, value=value)
    if role in ("checkbox", "radio", "option", "switch"):
        return Draft(role, label, checked=rng.random() < 0.2)
    marked = role in ("link", "heading", "tab") and rng.random() < 0.2
    return Draft(role, label, checked=rng.random() < 0.5 if marked else None)


def blank(role: Role, label: str) -> Draft:
    """An element in its resting state: an empty field, an unchecked box, a plain button."""
    if role in ("field", "area"):
        return Draft(role, label, value="")
    if role in ("checkbox", "radio", "option", "switch"):
        return Draft(role, label, checked=False)
    return Draft(role, label)


def submit(bag: Bag) -> Draft:
    """The button that sends a form."""
    known = ("Submit", "Submit", "Search", "Login", "OK", "Done", "Next", "Send", "Save")
    return Draft("button", bag.word() if bag.rng.random() < 0.3 else bag.rng.choice(known))


def and_submit(rng: random.Random, button: Draft, bag: Bag) -> str:
    """How an instruction asks for the button."""
    verb = rng.choice(("and press", "and hit", "and click", "then click", "click on", "then press"))
    name = button.label if rng.random() < 0.7 else bag.quoted(button.label)
    return f"{verb} {rng.choice(('', 'the '))}{name}{rng.choice(('', ' button'))}"


def name_of(rng: random.Random, role: str) -> str:
    """A word for an element of this role."""
    return rng.choice(NAMES[role])
