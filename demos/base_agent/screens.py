"""Invented screens of random words, with an instruction and a plan, and the samples made from them.

A page ends the task by itself, so a plan has no step that ends it. The families in
:mod:`.pages` cover kinds of instruction (click a named element, fill a form,
choose from a list, look up a value …), not any real page.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field

from swarm_ui.action import Action, ActionType
from swarm_ui.model import Decision
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
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
    """A screen and questions about it: ``("where" | "state" | "value", element index)``; a sample
    of level 1."""

    decision: Decision
    questions: tuple[tuple[str, int], ...]


def to_sample(screen: Screen, at: int) -> ActionSample:
    """The screen after the first ``at`` steps of its plan, and the next step as the correct action.
    Changes the widgets in place."""
    history = list(screen.history)
    for step in screen.plan[:at]:
        history.append(past(step, screen.widgets))
        _apply(step, screen.widgets)
    action = as_action(screen.plan[at], screen.widgets)
    return ActionSample(Decision(observation=observe(screen, history)), action, level=2)


def observe(screen: Screen, history: Sequence[Past]) -> Observation:
    elements = [
        Element(index=i, role=w.role, text=w.label, value=w.value, checked=w.checked,
                editable=w.value is not None and w.role in ("field", "area"))
        for i, w in enumerate(screen.widgets)
    ]  # fmt: skip
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
    role, label = (step.widget.role, step.widget.label) if step.widget else ("", "")
    return Past(action=as_action(step, widgets), role=role, label=label)


def _apply(step: Step, widgets: Sequence[Widget]) -> None:
    if (widget := step.widget) is None:
        return
    if step.text is not None:
        widget.value = step.text
    elif widget.role in ("checkbox", "switch"):
        widget.checked = not widget.checked
    elif widget.role in ("radio", "option"):
        for other in widgets:
            if other.role == widget.role:
                other.checked = other is widget


# Names that an instruction may use for an element of a role; of others it is that of the role.
_NAMES: dict[str, tuple[str, ...]] = {
    "item": ("item", "folder", "entry", "option", "menu item"),
    "icon": ("icon", "button"),
    "heading": ("section", "heading"),
    "radio": ("radio button", "radio", "option"),
    "option": ("option", "item"),
    "field": ("text field", "textbox", "text input", "field", "input", "input field"),
    "area": ("textarea", "text area"),
}
VERBS = (
    "Click", "Click on", "Press", "Tap", "Select", "Choose", "Find and click on", "Hit",
    "Find and click", "Go to", "Open", "Mark", "Pick",
)  # fmt: skip
_BUTTONS = ("Submit", "Submit", "Search", "Login", "OK", "Done", "Next", "Send", "Save")
_DISTRACTORS: tuple[Role, ...] = (
    "button", "link", "item", "text", "text", "label", "cell", "heading", "icon", "field", "area",
    "checkbox", "radio", "option", "shape", "tab", "switch",
)  # fmt: skip


class Words(random.Random):
    """Draws words without repeating one, so that a label has one meaning on a screen; and elements
    and instructions made of them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._used = {"and", "the", "then"}  # words of the instructions themselves

    def chance(self, share: float) -> bool:
        return self.random() < share

    def word(self) -> str:
        for _ in range(50):
            drawn = self.any_word()
            if drawn.lower() not in self._used:
                break
        self._used.add(drawn.lower())
        return drawn

    def any_word(self) -> str:
        kind = self.random()
        if kind < 0.4:
            made = "".join(self.choice(_SYLLABLES) for _ in range(self.randint(1, 3)))
            return made.capitalize() if self.chance(0.3) else made
        if kind < 0.6:
            return "".join(self.choice(_CHARACTERS) for _ in range(self.randint(2, 7)))
        if kind < 0.94:
            known = self.choice(KNOWN_WORDS)
            return known.capitalize() if self.chance(0.4) else known
        return str(self.randint(0, 20) if self.chance(0.5) else self.randint(21, 3000))

    def phrase(self, longer: float = 0.25) -> str:
        """One word, or with probability ``longer`` two or three."""
        count = self.randint(2, 3) if self.chance(longer) else 1
        return " ".join(self.word() for _ in range(count))

    def sentence(self, least: int, most: int) -> str:
        return " ".join(self.any_word() for _ in range(self.randint(least, most)))

    def number(self) -> str:
        """A count, a time, an amount or a telephone number, as screens show them."""
        hour, minute, count = self.randint(0, 23), self.randint(0, 59), self.randint(0, 99)
        shown = (f"{count}", f"{hour:02d}:{minute:02d}", f"{count}.{minute:02d}",
                 f"555-{self.randint(1000, 9999)}")  # fmt: skip
        return self.choice(shown)

    def value(self, numbers: float = 0.2) -> str:
        """A number with this probability, else a word."""
        return self.number() if self.chance(numbers) else self.word()

    def quoted(self, text: str) -> str:
        """The text, in quotes with probability 0.6."""
        return f'"{text}"' if self.chance(0.6) else text

    def say(self, *templates: str, **parts: str) -> str:
        """One of the templates, filled in: ``{name}`` is a part, ``{word}`` a new word, ``{verb}``
        one of click, ``{q:name}`` a part that may be quoted, and ``[a|b]`` one of the texts."""

        def part(found: re.Match[str]) -> str:
            quoted, name = found[1], found[2]
            text = parts.get(name)
            if text is None:
                text = self.choice(VERBS) if name == "verb" else self.word()
            return self.quoted(text) if quoted else text

        chosen = re.sub(r"\[([^]]*)\]", lambda m: self.choice(m[1].split("|")),
                        self.choice(templates))  # fmt: skip
        return re.sub(r"\{(q:)?(\w+)\}", part, chosen)

    def named(self, role: str) -> str:
        """A name of a role in an instruction."""
        return self.choice(_NAMES.get(role, (role,)))

    def mixed(self, core: Sequence[Widget], others: Sequence[Widget]) -> list[Widget]:
        """``others`` inserted at random positions into ``core``, which keeps its sequence."""
        out = list(core)
        for other in others:
            out.insert(self.randint(0, len(out)), other)
        return out

    def others(self, most: int, roles: Sequence[Role] = _DISTRACTORS, least: int = 0,
               not_of: Role | None = None) -> list[Widget]:  # fmt: skip
        """Elements that the instruction does not mention, up to ``most``."""
        made = [self._other(self.choice(roles)) for _ in range(self.randint(least, most))]
        return [widget for widget in made if widget.role != not_of]

    def _other(self, role: Role) -> Widget:
        long = role == "text" and self.chance(0.4)
        label = self.sentence(3, 9) if long else self.phrase()
        if role in ("field", "area"):
            value = "" if self.chance(0.7) else self.any_word()
            return Widget(role, "" if self.chance(0.5) else label, value=value)
        if role in ("checkbox", "radio", "option", "switch"):
            return Widget(role, label, checked=self.chance(0.2))
        marked = role in ("link", "heading", "tab") and self.chance(0.2)
        return Widget(role, label, checked=self.chance(0.5) if marked else None)

    def submit(self) -> tuple[Widget, str]:
        """A button, and the part of an instruction that asks for it."""
        label = self.word() if self.chance(0.3) else self.choice(_BUTTONS)
        name = label if self.chance(0.7) else self.quoted(label)
        press = "[and press|and hit|and click|then click|click on|then press]"
        return Widget("button", label), self.say(f"{press} [|the ]{{name}}[| button]", name=name)


def widget(role: Role, label: str) -> Widget:
    """An element in its initial state: an empty field, an unchecked box, a plain button."""
    return Widget(
        role, label, value="" if role in ("field", "area") else None,
        checked=False if role in ("checkbox", "radio", "option", "switch") else None,
    )  # fmt: skip
