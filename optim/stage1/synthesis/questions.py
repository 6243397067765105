"""Samples of level 1 of stage 1: questions about any screen, with the answer as text."""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.stage1.synthesis.screen_words import (
    NOUNS,
    by_role,
    label,
    named,
    noun,
    only_ones,
    ordinal,
    quoted,
    sentence,
)
from swarm_ui.optim.stage1.synthesis.screens import ActionSample

Asked = tuple[str, str]
"""A question and its answer."""
_WHERE = ("which number has {}", "what is the number of {}", "where is {}", "find {}")
_VALUE = ("what does {} say", "what is the value of {}", "what stands at {}", "read {}",
          "what is {}", "which value does {} have")  # fmt: skip
_STATE = ("is {} on or off", "what is the state of {}", "is {} switched on or off", "{}: on or off")
_ROLE = ("what kind of element is {}", "is {} a button, a field or something else", "what is {} : "
         "a button, a field, an item")  # fmt: skip
_TITLE = ("which screen is this", "what is in front", "where am I", "which app is open")
_PURPOSES = {
    "add": ("which button makes a new entry", "where would I add one more"),
    "save": ("which button stores the entries", "where would I save this"),
    "edit": ("which button opens this for editing", "where would I modify this"),
    "delete": ("which button removes this", "where would I delete this"),
    "leave": ("which button leaves without saving", "where would I cancel this"),
}


def questions(observation: Observation, rng: random.Random) -> list[ActionSample]:
    """Questions of all kinds about a screen. The phrasing of each is drawn at random.

    The goal of each decision is the question; the correct action is ``answer`` with the answer.
    """
    actions = observation.actions
    if actions and "answer" not in actions:
        actions = (*actions, "answer")
    blank = replace(observation, history=(), actions=actions)
    return [
        ActionSample(
            Decision(observation=replace(blank, goal=sentence(asked, rng, end="?"))),
            Action(action_type="answer", text=answer),
            level=1,
        )
        for asked, answer in _asked(blank, rng)
    ]


def _asked(screen: Observation, rng: random.Random) -> Iterator[Asked]:
    if screen.app:
        yield rng.choice(_TITLE), screen.app
    for element in named(screen):
        yield from _about(element, rng)
    yield from _counted(screen, rng)
    yield from _gathered(screen, rng)
    for meaning, element in only_ones(screen.elements).items():
        yield rng.choice(_PURPOSES[meaning]), _shown(element)


def _about(element: Element, rng: random.Random) -> Iterator[Asked]:
    name = quoted(label(element), rng)
    yield rng.choice(_WHERE).format(name), _shown(element)
    if element.value:
        yield rng.choice(_VALUE).format(name), " ".join(element.value.split())
    if element.checked is not None:
        yield rng.choice(_STATE).format(name), "on" if element.checked else "off"
    yield rng.choice(_ROLE).format(name), element.role


def _counted(screen: Observation, rng: random.Random) -> Iterator[Asked]:
    """Questions such as "Which is the second item?" and "How many buttons are there?"."""
    for role in sorted({element.role for element in screen.elements}):
        alike = by_role(screen, role)
        place = rng.randrange(len(alike))
        which = ordinal(place, len(alike), rng)
        if role in NOUNS and which is not None and label(alike[place]):
            yield f"what is the {which} {noun(alike[place], rng)}", _shown(alike[place])
        if role in NOUNS and len(alike) <= 6:
            yield f"how many elements of the kind {role} are there", str(len(alike))


def _gathered(screen: Observation, rng: random.Random) -> Iterator[Asked]:
    """Questions for all elements with some property."""
    fields = [label(e) for e in screen.elements if e.editable]
    asked = rng.choice(("what can be filled in", "which fields are there", "where can I type"))
    yield asked, ", ".join(fields[:6]) or "nothing"
    empty = [label(e) for e in screen.elements if e.editable and not e.value]
    if fields:
        asked = rng.choice(("which fields are empty", "what is still to be filled in"))
        yield asked, ", ".join(empty[:6]) or "none"
    held = [e for e in screen.elements if e.checked is not None]
    if held:
        on = [label(e) for e in held if e.checked]
        asked = rng.choice(("what is switched on", "what is on", "which ones are on or checked"))
        yield asked, ", ".join(on[:6]) or "nothing"


def _shown(element: Element) -> str:
    """An element as an answer: its label, and its number in brackets."""
    return f"{label(element)} [{element.index}]"
