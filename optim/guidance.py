"""Guidance, negatives and corrections between a decision and its execution in training."""

from __future__ import annotations

import random

from swarm_ui.action import Action
from swarm_ui.credit import Judge, proposals
from swarm_ui.environment import Environment, Restorable
from swarm_ui.model import Decision
from swarm_ui.node import derive
from swarm_ui.optim.adversary import Adversary, Teacher, negative
from swarm_ui.optim.credit.critic import inmost
from swarm_ui.optim.preferences import ScoredAction
from swarm_ui.rollout import Intervention
from swarm_ui.trace.records import Trace

Note = tuple[list[ScoredAction], list[ScoredAction]]
"""The wrong actions of the adversary, and the right actions of the teacher, for one decision."""


class Guidance:
    """An intervention for :func:`swarm_ui.rollout.rollout_many`.

    The judge grades the proposals of each decision while the environment is still in its state.
    For one of the right actions, the adversary writes a wrong alternative. If no agent proposed a
    right action, the teacher shows one, which the judge grades. In a *guided* rollout, a right
    action is executed if the team voted for a wrong one. Guidance and the teacher are our additions
    to the paper: without guidance an untrained team fails at the first hard step and never reaches
    later ones.

    It can be sent to other processes if judge, adversary and teacher can. What adversary and
    teacher wrote is the note of each step (:attr:`swarm_ui.trace.records.Episode.notes`), a
    :data:`Note`.
    """

    def __init__(
        self,
        judge: Judge | None,
        adversary: Adversary | None = None,
        *,
        teacher: Teacher | None = None,
        guide: float = 0.0,
        grade_negatives: bool = True,
        trust: float = 1.0,
        seed: int = 0,
    ) -> None:
        """
        Args:
            judge: decides which actions are right. ``None``: there is no guidance, the adversary
                writes an alternative to the voted action, and all that it writes is taken as wrong.
            adversary: ``None``: no negatives.
            teacher: ``None``: nobody shows a right action. It needs a judge.
            guide: probability of executing a right proposal of an agent, or what the teacher
                showed, instead of a wrong vote.
            grade_negatives: keep only actions of the adversary that the judge finds wrong.
            trust: the judge's weight relative to the outcome, in [0, 1]. The probability of
                guidance is multiplied by it. Below 0.5 the adversary does not use the judge, and
                the teacher is not asked.
            seed: the seed of guidance and adversary. Equal decisions get equal draws.
        """
        self._judge, self._adversary, self._teacher = judge, adversary, teacher
        self._guide, self._seed = guide * trust, seed
        self._trusted = judge is not None and trust >= 0.5
        self._grades = self._trusted and grade_negatives

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        """Guidance, and the written actions as a note, for one decision; see
        :class:`swarm_ui.rollout.Intervene`."""
        rng = random.Random(derive(self._seed, trace.run, trace.seed))
        negatives: list[ScoredAction] = []
        shown: list[ScoredAction] = []
        if not self._trusted and trace.action is not None:
            negatives = await self._opposed(trace, trace.action, None, rng)
        if self._judge is None:
            return Intervention(note=(negatives, shown)) if negatives else None
        world = inmost(environment)
        state = world.snapshot() if isinstance(world, Restorable) else None
        graded = await self._graded(self._judge, trace, state)
        good = [g.action for g in graded if g.credit > 0.5]
        if good and self._trusted:
            negatives = await self._opposed(trace, rng.choice(good), state, rng)
        elif self._trusted:
            shown = await self._taught(self._judge, trace, state)
            good = [each.action for each in shown]
        execute = self._instead(trace, graded, good, rng)
        note = (negatives, shown) if negatives or shown else None
        return Intervention(execute=execute, note=note)

    async def _graded(self, judge: Judge, trace: Trace, state: object | None) -> list[ScoredAction]:
        """The distinct proposals of a decision that the judge can grade."""
        said = {m.action.key: m.action for m in proposals(trace) if m.action is not None}
        if not said:
            return []
        grades = await judge.grade(trace.observation, list(said.values()), state)
        return [
            ScoredAction(action=action, credit=grade)
            for action, grade in zip(said.values(), grades, strict=True)
            if grade is not None
        ]

    def _instead(
        self, trace: Trace, graded: list[ScoredAction], good: list[Action], rng: random.Random
    ) -> Action | None:
        """The right action that is executed instead of a wrong vote, if any."""
        draw = rng.random()
        if not good or draw >= self._guide:
            return None
        if trace.action is None:
            return rng.choice(good)
        voted = trace.action.key
        wrong = any(g.action.key == voted and g.credit < 0.5 for g in graded)
        return rng.choice(good) if wrong else None

    async def _opposed(
        self, trace: Trace, good: Action, state: object | None, rng: random.Random
    ) -> list[ScoredAction]:
        """The wrong action that the adversary writes."""
        if self._adversary is None:
            return []
        judge = self._judge if self._grades else None

        async def grade(action: Action) -> float | None:
            if judge is None:
                return 0.0
            (mark,) = await judge.grade(trace.observation, [action], state)
            return mark

        context, seed = Decision(observation=trace.observation), rng.getrandbits(31)
        written = await negative(self._adversary, context, good, grade, seed=seed)
        return [] if written is None else [ScoredAction(action=written, credit=0.0)]

    async def _taught(self, judge: Judge, trace: Trace, state: object | None) -> list[ScoredAction]:
        """The action that the teacher shows, if the judge finds it right."""
        if self._teacher is None:
            return []
        seed = derive(self._seed, trace.run, trace.seed, "teacher") % 2**31
        action = await self._teacher.show(Decision(observation=trace.observation), state, seed=seed)
        if action is None:
            return []
        (credit,) = await judge.grade(trace.observation, [action], state)
        right = credit is not None and credit > 0.5
        return [ScoredAction(action=action, credit=credit or 0.0)] if right else []
