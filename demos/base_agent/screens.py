"""Invented screens of random words, with an instruction and a plan, and the samples made from them.

A page ends the task by itself, so a plan has no step that ends it. The families in
:mod:`.clicking` and :mod:`.filling` cover kinds of instruction (click a named element, fill a form,
choose from a list, look up a value …), not any real page.
"""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from swarm_ui.action import Action, ActionType
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation, Past, Role

_ONSETS = [*"bcdfghjklmnprstvwz", "br", "ch", "st", "tr"]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "en", "or"]
_SYLLABLES = [a + b for a in _ONSETS for b in _VOWELS]
_CHARACTERS = string.ascii_letters + string.digits

PAGE_ACTIONS: tuple[ActionType, ...] = ("click", "input_text")
DEVICE_ACTIONS: tuple[ActionType, ...] = (*PAGE_ACTIONS, "navigate_back", "answer", "status")


@dataclass(slots=True, eq=False)
class Widget:
    """A mutable element of an invented screen; compared by identity."""

    role: Role
    label: str
    value: str | None = None
    checked: bool | None = None


@dataclass(slots=True)
class Step:
    """One step of a plan: type ``text`` into the widget, click the widget, or ``act``."""

    widget: Widget | None = None
    text: str | None = None
    act: Action | None = None


DONE = Step(act=Action(action_type="status", goal_status="complete"))
BACK = Step(act=Action(action_type="navigate_back"))


@dataclass(slots=True)
class Screen:
    """An invented screen, a goal, and the steps that are left."""

    goal: str
    widgets: list[Widget]
    plan: list[Step]
    title: str = ""
    history: list[Past] = field(default_factory=list)
    actions: tuple[ActionType, ...] = PAGE_ACTIONS


@dataclass(frozen=True, slots=True)
class ActionSample:
    """A decision and its correct action; a sample of level 2 or 3."""

    decision: Decision
    action: Action
    level: int


@dataclass(frozen=True, slots=True)
class QuestionSample:
    """A screen and questions about it; a sample of level 1.

    A question is ``("where" | "state" | "value", element index)``.
    """

    decision: Decision
    questions: tuple[tuple[str, int], ...]


class SampleSource(Protocol):
    """An endless source of samples for :func:`demos.base_agent.training.train`."""

    def draw(self, questions: float | None = None) -> ActionSample | QuestionSample:
        """The next sample; ``questions`` overrides the share of level 1."""
        ...


def to_sample(screen: Screen, rng: random.Random, at: int | None = None) -> ActionSample:
    """The screen after the first ``at`` steps of its plan, and the next step as the correct action.

    By default ``at`` is random. The widgets of the screen are changed in place.
    """
    done = rng.randrange(len(screen.plan)) if at is None else at
    history = list(screen.history)
    for step in screen.plan[:done]:
        history.append(past(step, screen.widgets))
        _apply(step, screen.widgets)
    action = as_action(screen.plan[done], screen.widgets)
    return ActionSample(Decision(observation=observe(screen, history)), action, level=2)


def observe(screen: Screen, history: Sequence[Past]) -> Observation:
    elements = []
    for i, w in enumerate(screen.widgets):
        typed = w.value is not None and w.role in ("field", "area")
        elements.append(Element(index=i, role=w.role, text=w.label, value=w.value,
                                checked=w.checked, editable=typed))  # fmt: skip
    return Observation(goal=screen.goal, elements=tuple(elements), app=screen.title,
                       history=tuple(history), actions=screen.actions)  # fmt: skip


def as_action(step: Step, widgets: Sequence[Widget]) -> Action:
    """Convert a step to an action on the screen that consists of ``widgets``."""
    if step.act is not None:
        return step.act
    assert step.widget is not None  # a step without an action has a widget
    index = next(i for i, widget in enumerate(widgets) if widget is step.widget)
    kind: ActionType = "click" if step.text is None else "input_text"
    return Action(action_type=kind, target=step.widget.label, index=index, text=step.text)


def past(step: Step, widgets: Sequence[Widget]) -> Past:
    action, widget = as_action(step, widgets), step.widget
    if widget is None:
        return Past(action=action, role="", label="")
    return Past(action=action, role=widget.role, label=widget.label)


def _apply(step: Step, widgets: Sequence[Widget]) -> None:
    widget = step.widget
    if widget is None:
        return
    if step.text is not None:
        widget.value = step.text
    elif widget.role in ("checkbox", "switch"):
        widget.checked = not widget.checked
    elif widget.role in ("radio", "option"):
        for other in widgets:
            if other.role == widget.role:
                other.checked = False
        widget.checked = True


def interleave(
    rng: random.Random, core: Sequence[Widget], others: Sequence[Widget]
) -> list[Widget]:
    """``others`` inserted at random positions into ``core``, which keeps its sequence."""
    out = list(core)
    for other in others:
        out.insert(rng.randint(0, len(out)), other)
    return out


class WordSampler:
    """Samples words without repeating one, so that a label has one meaning on a screen."""

    def __init__(self, rng: random.Random, known: Sequence[str]) -> None:
        """``known``: ordinary words to mix in; the rest is made up."""
        self.rng = rng
        self._known = known
        self._used: set[str] = set()

    def word(self) -> str:
        for _ in range(50):
            drawn = self.any_word()
            if drawn.lower() not in self._used:
                break
        self._used.add(drawn.lower())
        return drawn

    def any_word(self) -> str:
        rng, kind = self.rng, self.rng.random()
        if kind < 0.4:
            made = "".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(1, 3)))
            return made.capitalize() if rng.random() < 0.3 else made
        if kind < 0.6:
            return "".join(rng.choice(_CHARACTERS) for _ in range(rng.randint(2, 7)))
        if kind < 0.94:
            known = rng.choice(self._known)
            return known.capitalize() if rng.random() < 0.4 else known
        return str(rng.randint(0, 20) if rng.random() < 0.5 else rng.randint(21, 3000))

    def phrase(self, longer: float = 0.25) -> str:
        """One word, or with probability ``longer`` two or three."""
        count = 1 if self.rng.random() > longer else self.rng.randint(2, 3)
        return " ".join(self.word() for _ in range(count))

    def sentence(self, least: int, most: int) -> str:
        return " ".join(self.any_word() for _ in range(self.rng.randint(least, most)))

    def number(self) -> str:
        """A count, a time, an amount or a telephone number, as screens show them."""
        rng = self.rng
        return self.one_of(
            str(rng.randint(0, 99)),
            f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}",
            f"{rng.randint(1, 99)}.{rng.randint(0, 99):02d}",
            f"555-{rng.randint(1000, 9999)}",
        )

    def one_of(self, *texts: str) -> str:
        return self.rng.choice(texts)

    def quoted(self, text: str) -> str:
        """The text, in quotes with probability 0.6."""
        return f'"{text}"' if self.rng.random() < 0.6 else text


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
