"""Lessons for agents that each see a window of a long screen, may pass, and hear colleagues.

What is right for an agent: a right action that its window shows; else a right one that a colleague
proposed; else to pass. Colleagues err, and some say nothing but nonsense, so an agent learns when
to believe what it hears. Source of the recipe and of its shares: probes of ours.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from swarm_ui.action import Abstain, Action
from swarm_ui.environment import Environment, Graded
from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.message import Message
from swarm_ui.model import Decision
from swarm_ui.observation import Observation
from swarm_ui.optim.stage1.synthesis.demonstrations import wrong_action
from swarm_ui.optim.stage1.synthesis.questions import Quiz
from swarm_ui.optim.stage1.synthesis.scene import Lesson
from swarm_ui.trace.records import hear
from swarm_ui.view import View, Window, windowed

_DONE = Action(action_type="status", goal_status="complete")
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Moment:
    """A screen on the way, and all that is known to be right on it."""

    observation: Observation
    right: tuple[Action, ...]
    """In the screen's own indices; first the one nearest to the top."""
    named: frozenset[int]
    """Elements whose label the goal has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowMix:
    """How window lessons are drawn; the shares are defaults of ours."""

    agents: int = 4
    copies: tuple[tuple[int, float], ...] = ((1, 0.5), (2, 0.3), (4, 0.2))
    """How many windows show each element, with weights; ``agents`` of them: the whole screen."""
    densities: tuple[float, ...] = (0.0, 0.5, 0.5, 1.0)
    """Of the edges over which colleagues are heard."""
    errors: tuple[float, ...] = (0.0, 0.08, 0.2)
    """Share of wrong messages."""
    broken: float = 0.3
    """Share of lessons in which one colleague is always wrong."""
    passes: float = 0.25
    """Share of lessons kept whose answer is to pass; with all of them an agent learns to pass
    always."""
    ends: float = 0.35
    """Share of lessons kept whose answer is to end the task."""
    share: float = 0.85
    """Of window lessons in the whole stream."""


class Lessons(Protocol):
    """Where lessons come from, endlessly."""

    def draw(self, questions: float | None = None) -> Lesson | Quiz: ...


async def moments(
    environment: Environment, *, task: str, seed: int, rng: random.Random, stray: float = 0.12
) -> list[Moment]:
    """The moments of one task done by the expert; with probability ``stray`` a step is a random
    click instead.

    Raises:
        ConfigError: the environment has no expert.
    """
    if not isinstance(environment, Graded):
        raise ConfigError(
            f"window lessons need an environment with an expert; {environment.name} has none"
        )
    screen = await environment.reset(task=task, seed=seed)
    found: list[Moment] = []
    while True:
        right = await _right(environment, environment, screen)
        found.append(Moment(screen, right, _named(screen)))
        action = rng.choice(right)
        if action.action_type != "status" and rng.random() < stray:
            action = wrong_action(screen, rng) or action
        step = await environment.step(action)
        if step.ended:
            return found
        screen = step.observation


async def _right(
    environment: Environment, graded: Graded, screen: Observation
) -> tuple[Action, ...]:
    """The expert's action, and what it does later on this screen that is right now as well: the
    fields of a form may be filled, and boxes checked, in any order."""
    state = graded.snapshot()
    plan, now = [graded.expert()], screen
    while plan[-1].action_type != "status":
        step = await environment.step(plan[-1])
        now = step.observation
        if step.ended or _labels(now) != _labels(screen):
            break
        plan.append(graded.expert())
    graded.restore(state)
    right = {a.key: a for a in plan if a is plan[0] or graded.grade(a) == 1.0}
    return tuple(sorted(right.values(), key=lambda a: -1 if a.index is None else a.index))


def _labels(screen: Observation) -> tuple[str, list[str]]:
    return screen.app, [element.label for element in screen.elements]


def _named(screen: Observation) -> frozenset[int]:
    goal = screen.goal.casefold()
    labels = [(e.index, e.label.casefold()) for e in screen.elements if e.label]
    return frozenset(i for i, label in labels if re.search(rf"\b{re.escape(label)}(?!\w)", goal))


class WindowStream:
    """Window lessons from a pool of moments, mixed with the lessons of another stream."""

    def __init__(
        self, seed: int, pool: Sequence[Moment], others: Lessons, mix: WindowMix | None = None
    ) -> None:
        self.rng = random.Random(seed)
        self._pool, self._others = pool, others
        self.mix = mix or WindowMix()

    def draw(self, questions: float | None = None) -> Lesson | Quiz:
        """The next sample; see :meth:`~swarm_ui.optim.stage1.synthesis.curriculum.Stream.draw`."""
        if self.rng.random() >= self.mix.share:
            return self._others.draw(questions)
        while True:
            lesson = window_lesson(self.rng.choice(self._pool), self.rng, self.mix)
            if self.rng.random() < self._kept(lesson.action):
                return lesson

    def _kept(self, action: Action | Abstain) -> float:
        if isinstance(action, Abstain):
            return self.mix.passes
        return self.mix.ends if action.action_type == "status" else 1.0


def window_lesson(moment: Moment, rng: random.Random, mix: WindowMix) -> Lesson:
    """One agent's part in a simulated decision of the team: what it sees, heard, should say."""
    n = mix.agents
    copies, weights = zip(*mix.copies, strict=True)
    chosen = rng.choices(copies, weights)[0]
    names = [f"agent_{k}" for k in range(n)]
    edges = random_dag(names, rng.choice(mix.densities), rng)
    error, broken = rng.choice(mix.errors), rng.randrange(n) if rng.random() < mix.broken else -1
    wanted, said = rng.randrange(n), dict[str, Message]()
    for k in _spoken_before(wanted, names, edges):
        view = windowed(moment.observation, Window(part=k, parts=n, copies=chosen))
        inbox = [said[a] for a, b in edges if b == names[k]]
        right = _target(moment, view, [m.action for m in inbox if m.action is not None])
        if k == wanted:
            return _lesson(view, inbox, right)
        wrong = k == broken or rng.random() < error
        said[names[k]] = _message(names[k], _wrong(moment, view, rng) if wrong else right)
    raise AssertionError("the wanted agent is among those that speak")


def _spoken_before(wanted: int, names: Sequence[str], edges: Sequence[Edge]) -> list[int]:
    """Who has to speak before the wanted agent can, and that agent last."""
    needed, order = [wanted], list[int]()
    while needed:
        here = needed.pop()
        order = [k for k in order if k != here] + [here]
        needed += [names.index(a) for a, b in edges if b == names[here]]
    return order[::-1]


def _target(moment: Moment, view: View, heard: Iterable[Action]) -> Action | Abstain:
    """What is right for who sees this and heard that, in the screen's indices."""
    for action in moment.right:
        if _evident(moment, action, view):
            return action
    right = {action.key: action for action in moment.right}
    for action in heard:
        if action.key in right:
            return right[action.key]
    return Abstain()


def _evident(moment: Moment, action: Action, view: View) -> bool:
    """Whether what the view shows is reason enough for the action."""
    if action.index is not None:
        return action.index in view.order
    if action.action_type == "status":  # where nothing is named, the last action has to tell
        return not moment.named or not moment.named.isdisjoint(view.order)
    if action.action_type == "answer":
        seen = view.observation
        texts = [f"{e.label} {e.value or ''}" for e in seen.elements]
        texts += [past.label for past in seen.history]
        return any((action.text or "").casefold() in text.casefold() for text in texts)
    return True


def _wrong(moment: Moment, view: View, rng: random.Random) -> Action | Abstain:
    """What an agent that errs says about what it sees."""
    right = {action.key for action in moment.right}
    for _ in range(_TRIES):
        shown = _DONE if rng.random() < 0.1 else wrong_action(view.observation, rng)
        action = None if shown is None else view.to_screen(shown)
        if action is not None and action.key not in right:
            return action
    return Abstain()


def _message(sender: str, said: Action | Abstain) -> Message:
    action = None if isinstance(said, Abstain) else said
    return Message(id=f"{sender}:0", sender=sender, round=0, content=said.json(), action=action)


def _lesson(view: View, inbox: Sequence[Message], right: Action | Abstain) -> Lesson:
    heard = tuple(hear(message, view, listener="") for message in inbox)
    decision = Decision(observation=view.observation, heard=heard, partial=view.partial)
    if isinstance(right, Abstain):
        return Lesson(decision, right, level=3)
    shown = view.told(right)
    assert shown is not None  # it is on the screen, so the view has a number for it
    return Lesson(decision, shown, level=3)
