"""Invented screens with an instruction and a plan, and the samples made from them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from swarm_ui.action import Abstain, Action, ActionType
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation, Past, Role

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
    action: Action | Abstain
    level: int


@dataclass(frozen=True, slots=True)
class QuestionSample:
    """A screen and questions about it; a sample of level 1.

    A question is ``("where" | "state" | "value", element index)``.
    """

    decision: Decision
    questions: tuple[tuple[str, int], ...]


class SampleSource(Protocol):
    """An endless source of samples for :func:`swarm_ui.optim.stage1.supervised.train`."""

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
