"""Guidance, negatives and corrections between a decision and its execution in training."""

from __future__ import annotations

import random
from collections.abc import Iterable

from swarm_ui.action import Action
from swarm_ui.credit import Judge
from swarm_ui.environment import Environment, Restorable
from swarm_ui.model import Decision
from swarm_ui.node import derive
from swarm_ui.optim.adversary import Adversary, Teacher
from swarm_ui.optim.credit.critic import inmost, proposed
from swarm_ui.optim.preferences import ScoredAction
from swarm_ui.rollout import Intervention
from swarm_ui.trace.records import Trace

_ATTEMPTS = 4
"""Proposals of the adversary for one negative."""


class Guidance:
    """An intervention for :func:`swarm_ui.rollout.rollout_many`.

    The judge grades the proposals of each decision while the environment is still in its state.
    For one of the right actions, the adversary writes a wrong alternative. If no agent proposed a
    right action, the teacher shows one, which the judge grades. In a *guided* rollout, a right
    action is executed if the team voted for a wrong one: else an untrained team never gets beyond
    the first hard step. Guidance and the teacher are our additions to the paper.

    What adversary and teacher wrote is the note of each step, a
    :data:`~swarm_ui.optim.preferences.Alternatives`.
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
            judge: decides which actions are right. ``None``: there is no guidance and no teacher,
                the adversary writes an alternative to the voted action, and all of it is wrong.
            guide: probability of executing a right action instead of a wrong vote.
            grade_negatives: keep only actions of the adversary that the judge finds wrong.
            trust: the judge's weight relative to the outcome, in [0, 1], a factor on ``guide``.
                Below 0.5 the adversary does not use the judge, and the teacher is not asked.
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
        world, voted, shown = inmost(environment), trace.action, list[ScoredAction]()
        state = world.snapshot() if self._judge and isinstance(world, Restorable) else None
        said = {action.key: action for action in proposed(trace).values()}
        graded = await self._graded(trace, said.values(), state)
        good = [g.action for g in graded if g.credit > 0.5]
        right = None if self._trusted else voted
        if self._trusted and good:
            right = rng.choice(good)
        negatives = [] if right is None else await self._opposed(trace, right, state, rng)
        if self._trusted and not good and self._teacher is not None:
            seed = derive(self._seed, trace.run, trace.seed, "teacher") % 2**31
            context = Decision(observation=trace.observation)
            taught = await self._teacher.show(context, state, seed=seed)
            found = await self._graded(trace, [taught] if taught else [], state)
            shown = [each for each in found if each.credit > 0.5]
            good = [each.action for each in shown]
        execute, guided = None, rng.random() < self._guide
        wrong = {g.action.key for g in graded if g.credit < 0.5}
        if good and guided and (voted is None or voted.key in wrong):
            execute = rng.choice(good)
        note = (negatives, shown) if negatives or shown else None
        return Intervention(execute=execute, note=note) if self._judge or note else None

    async def _graded(
        self, trace: Trace, actions: Iterable[Action], state: object | None
    ) -> list[ScoredAction]:
        listed = list(actions)
        if self._judge is None or not listed:
            return []
        grades = await self._judge.grade(trace.observation, listed, state)
        return [
            ScoredAction(action=action, credit=grade)
            for action, grade in zip(listed, grades, strict=True)
            if grade is not None
        ]

    async def _opposed(
        self, trace: Trace, good: Action, state: object | None, rng: random.Random
    ) -> list[ScoredAction]:
        """The wrong action that the adversary writes, by rejection sampling: the first of four
        that the judge finds wrong, if it grades them; one that it cannot grade is not kept."""
        if self._adversary is None:
            return []
        context, draws = Decision(observation=trace.observation), random.Random(rng.getrandbits(31))
        tried = {good.key}
        for _ in range(_ATTEMPTS):
            action = await self._adversary.oppose(context, good, seed=draws.getrandbits(31))
            if action is None or action.key in tried:
                continue
            tried.add(action.key)
            graded = await self._graded(trace, [action], state) if self._grades else []
            if not self._grades or any(g.credit < 0.5 for g in graded):
                return [ScoredAction(action=action, credit=0.0)]
        return []
