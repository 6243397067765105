"""References to elements of any screen in instructions and questions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from swarm_ui.observation import Element, Observation, Role

NOUNS: Mapping[Role, tuple[str, ...]] = {
    "app": ("app", "icon", "app icon"),
    "button": ("button",),
    "link": ("link",),
    "item": ("item", "entry", "row"),
    "icon": ("icon",),
    "field": ("field", "text field", "box"),
    "area": ("text area", "text box"),
    "checkbox": ("check box", "checkbox"),
    "radio": ("option", "radio button"),
    "option": ("option",),
    "switch": ("switch", "toggle"),
    "tab": ("tab",),
    "cell": ("cell",),
    "image": ("image", "picture"),
}
"""Role -> what people call such an element."""
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")

MEANINGS: Mapping[str, frozenset[str]] = {
    "add": frozenset(("add", "new", "create", "insert", "register", "enter", "append", "compose")),
    "save": frozenset(("save", "done", "confirm", "submit", "ok", "apply", "store", "accept")),
    "edit": frozenset(("edit", "modify", "update", "revise", "adjust", "amend", "correct")),
    "delete": frozenset(("delete", "remove", "drop", "bin", "clear", "destroy", "scrap")),
    "leave": frozenset(("cancel", "back", "close", "dismiss", "abort", "leave", "never")),
}
"""Purpose of a button -> first words of labels of such buttons."""


def uniquely_labelled(observation: Observation) -> list[Element]:
    """Elements whose label no other element has."""
    times = Counter(element.label.casefold() for element in observation.elements)
    return [e for e in observation.elements if e.label.strip() and times[e.label.casefold()] == 1]


def named(observation: Observation) -> list[Element]:
    """Enabled elements whose label no other element has."""
    return [element for element in uniquely_labelled(observation) if element.enabled]


def label(element: Element) -> str:
    return " ".join(element.label.split())


def noun(element: Element, rng: random.Random) -> str:
    """A word for this kind of element."""
    return rng.choice(NOUNS.get(element.role, ("element",)))


def quoted(text: str, rng: random.Random) -> str:
    """The text, sometimes in quotes."""
    return rng.choice(("{}", "{}", "{}", '"{}"', "'{}'", "“{}”")).format(text)


def by_role(observation: Observation, role: Role) -> list[Element]:
    """Elements of a role in the order of the screen."""
    return [element for element in observation.elements if element.role == role]


def ordinal(place: int, count: int, rng: random.Random) -> str | None:
    """``"second"`` or ``"last"`` for a place counted from 0; ``None`` if there is no word."""
    words = [ORDINALS[place]] if place < len(ORDINALS) else []
    if place == count - 1:
        words.append("last")
    return rng.choice(words) if words else None


def means(element: Element) -> str:
    """The purpose of a button, by the first word of its label; empty: it is unknown."""
    first = element.label.casefold().partition(" ")[0]
    if element.role not in ("button", "icon"):
        return ""
    return next((meaning for meaning, words in MEANINGS.items() if first in words), "")


def only_ones(elements: Sequence[Element]) -> dict[str, Element]:
    """The buttons whose purpose no other button of the screen has, by purpose."""
    found = [(means(element), element) for element in elements]
    times = Counter(meaning for meaning, _ in found)
    return {meaning: element for meaning, element in found if meaning and times[meaning] == 1}


def sentence(text: str, rng: random.Random, *, end: str = ".") -> str:
    """The text, sometimes with a capital and ``end``."""
    if rng.random() < 0.4:
        text = text[:1].upper() + text[1:]
    return text + end if rng.random() < 0.3 else text
