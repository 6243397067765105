"""An invented screen with an instruction and a plan; staged at any point of the plan."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from swarm_ui.action import Abstain, Action, ActionType
from swarm_ui.message import Heard
from swarm_ui.model import Decision
from swarm_ui.observation import Element, Observation, Past, Role

PAGE_ACTIONS: tuple[ActionType, ...] = ("click", "input_text")
DEVICE_ACTIONS: tuple[ActionType, ...] = (
    "click",
    "input_text",
    "navigate_back",
    "answer",
    "status",
)


@dataclass(slots=True, eq=False)
class Draft:
    """An element still being placed; compared by identity."""

    role: Role
    label: str
    value: str | None = None
    checked: bool | None = None


@dataclass(slots=True)
class Move:
    """One step of a plan: type ``text`` into the draft, or click it, or an act of its own."""

    draft: Draft | None = None
    text: str | None = None
    act: Action | None = None


DONE = Move(act=Action(action_type="status", goal_status="complete"))
BACK = Move(act=Action(action_type="navigate_back"))


@dataclass(slots=True)
class Scene:
    """A screen, a goal, and what is left to do on it."""

    goal: str
    drafts: list[Draft]
    plan: list[Move]
    title: str = ""
    history: list[Past] = field(default_factory=list)
    actions: tuple[ActionType, ...] = PAGE_ACTIONS


@dataclass(frozen=True, slots=True)
class Lesson:
    """One sample of stage 1: a decision and the right action."""

    decision: Decision
    action: Action | Abstain
    level: int
    """1, 2 or 3, as in the method."""


def stage(scene: Scene, rng: random.Random, at: int | None = None) -> Lesson:
    """The scene after some steps of its plan were done; the lesson is the next one."""
    done = rng.randrange(len(scene.plan)) if at is None else at
    history = list(scene.history)
    for move in scene.plan[:done]:
        history.append(past(move, scene.drafts))
        _apply(move, scene.drafts)
    action = act(scene.plan[done], scene.drafts)
    decision = Decision(observation=observe(scene, history))
    return Lesson(decision=decision, action=action, level=2)


def observe(scene: Scene, history: Sequence[Past]) -> Observation:
    """The scene's screen as agents get it."""
    elements = tuple(
        Element(
            index=i,
            role=d.role,
            text=d.label,
            value=d.value,
            checked=d.checked,
            editable=d.value is not None and d.role in ("field", "area"),
        )
        for i, d in enumerate(scene.drafts)
    )
    return Observation(
        goal=scene.goal,
        elements=elements,
        app=scene.title,
        history=tuple(history),
        actions=scene.actions,
    )


def act(move: Move, drafts: Sequence[Draft]) -> Action:
    """A move as an action on these drafts."""
    if move.act is not None:
        return move.act
    assert move.draft is not None  # a move without an act has a draft
    index = next(i for i, draft in enumerate(drafts) if draft is move.draft)
    kind: ActionType = "click" if move.text is None else "input_text"
    return Action(action_type=kind, target=move.draft.label, index=index, text=move.text)


def with_heard(lesson: Lesson, heard: Sequence[Heard]) -> Lesson:
    """The same lesson with colleagues' messages in its context."""
    decision = Decision(observation=lesson.decision.observation, heard=tuple(heard))
    return replace(lesson, decision=decision)


def past(move: Move, drafts: Sequence[Draft]) -> Past:
    """A move as an entry of the history."""
    action = act(move, drafts)
    draft = move.draft
    return Past(action=action, role=draft.role if draft else "", label=draft.label if draft else "")


def _apply(move: Move, drafts: Sequence[Draft]) -> None:
    draft = move.draft
    if draft is None:
        return
    if move.text is not None:
        draft.value = move.text
    elif draft.role in ("checkbox", "switch"):
        draft.checked = not draft.checked
    elif draft.role in ("radio", "option"):
        for other in drafts:
            if other.role == draft.role:
                other.checked = False
        draft.checked = True


def interleave(rng: random.Random, core: Sequence[Draft], others: Sequence[Draft]) -> list[Draft]:
    """``others`` put at random places between ``core``, whose order is kept."""
    out = list(core)
    for other in others:
        out.insert(rng.randint(0, len(out)), other)
    return out
