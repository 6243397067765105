"""Credit, negatives, corrections and guidance between a decision and its execution in training."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.credit import CreditAssigner, assigned
from swarm_ui.environment import Environment, Restorable
from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.node import derive
from swarm_ui.optim.credit.assigners.batch import BatchAssigner
from swarm_ui.optim.preferences.adversary import Adversary, negative
from swarm_ui.optim.preferences.grading import ScoredAction, score_of_action, scored_proposals
from swarm_ui.optim.preferences.pairs import PairConfig
from swarm_ui.optim.preferences.teacher import Teacher
from swarm_ui.rollout import Intervention
from swarm_ui.trace.records import Episode, Trace


class Critics(NamedTuple):
    """The assigner of credit to messages, the judge of single actions, and the teacher."""

    credit: CreditAssigner | None = None
    """Assigns credit while episodes are played; ``None``: credit is assigned afterwards."""
    judge: CreditAssigner | None = None
    """Judge for interventions and for negatives; ``None``: the assigner of credit."""
    batch: BatchAssigner | None = None
    """Assigns the credit of an iteration's episodes after they were played; ``None``: the outcome
    is the credit. It cannot be combined with ``credit``."""
    teacher: Teacher | None = None
    """Shows a right action where no agent proposed one; ``None``: nobody does. The judge grades
    what it shows."""


class _Written(NamedTuple):
    """The actions that adversary and teacher wrote for one decision. The trace is kept too: as long
    as it exists, no other trace can get its ``id()``."""

    trace: Trace
    negatives: list[ScoredAction]
    """Wrong actions of the adversary."""
    shown: list[ScoredAction]
    """Right actions of the teacher."""


def as_critics(critic: CreditAssigner | Critics | None) -> Critics:
    """The sources of credit and of judgements. A single critic serves as both.

    Raises:
        ConfigError: there are two sources of credit, a teacher that nobody judges, or an object
            that cannot play its role.
    """
    critics = critic if isinstance(critic, Critics) else Critics(critic, critic)
    for role, given in critics._asdict().items():
        _check_method(role, given)
    if critics.credit is not None and critics.batch is not None:
        raise ConfigError(
            "team training: Critics has both credit and batch, but each message gets its credit "
            f"from one source; leave out '{critics.credit.name}' or '{critics.batch.name}'"
        )
    if critics.teacher is not None and critics.judge is None and critics.credit is None:
        raise ConfigError(
            f"team training: the actions of '{critics.teacher.name}' need a judge, and there is "
            "neither a judge nor a critic; give Critics(judge=...), or leave the teacher out"
        )
    return critics


_METHODS = {"credit": "assign", "judge": "assign", "batch": "assess_batch", "teacher": "show"}
"""The method that the object in each role must have."""


def _check_method(role: str, given: object) -> None:
    if isinstance(given, type):
        raise ConfigError(
            f"team training: {role} must be an object, got the class {given.__name__}; make one"
        )
    method = _METHODS[role]
    if given is not None and not hasattr(given, method):
        raise ConfigError(
            f"team training: {role} needs a method {method}(), and a {type(given).__name__} has "
            "none. Decisions are judged by Critics(credit=...) and Critics(judge=...), batches of "
            "episodes by Critics(batch=...); assigners of single episodes cannot be used"
        )


class RolloutSupervisor:
    """An intervention for :func:`swarm_ui.rollout.rollout_many`.

    The critic scores every message while the environment is still in the state of the decision.
    The judge, which is the critic unless another is given, decides which single actions are right.
    For one of the right actions, the adversary writes a wrong alternative. If no agent proposed a
    right action, the teacher shows one, which the judge grades. In a *guided* rollout, a right
    action is executed if the team voted for a wrong one. Guidance and the teacher are our additions
    to the paper: without guidance an untrained team fails at the first hard step and never reaches
    later ones.

    It can be sent to other processes if critic, judge, adversary and teacher can. What adversary
    and teacher wrote is the note of each step (:attr:`swarm_ui.trace.records.Episode.notes`).
    """

    def __init__(
        self,
        critic: CreditAssigner | None,
        adversary: Adversary | None = None,
        *,
        judge: CreditAssigner | None = None,
        teacher: Teacher | None = None,
        guide: float = 0.0,
        grade_negatives: bool = True,
        trust: float = 1.0,
        seed: int = 0,
        thresholds: PairConfig | None = None,
    ) -> None:
        """
        Args:
            critic: ``None``: no credit.
            adversary: ``None``: no negatives.
            judge: decides which actions are right; ``None``: the critic. Without a critic and a
                judge there is no guidance, the adversary writes an alternative to the voted
                action, and every action of the adversary is taken as wrong.
            teacher: ``None``: nobody shows a right action. It needs a judge.
            guide: probability of executing a right proposal of an agent, or what the teacher
                showed, instead of a wrong vote.
            grade_negatives: keep only actions of the adversary that the judge finds wrong.
            trust: the critic's weight relative to the outcome, in [0, 1]. The probability of
                guidance is multiplied by it. Below 0.5 the adversary does not use the critic, and
                the teacher is not asked. It does not apply to a judge that is not the critic.
            seed: the seed of guidance and adversary. Equal decisions get equal draws.
            thresholds: the credit of right and of wrong actions.
        """
        if judge is not None and judge is not critic:
            trust = 1.0
        self._critic, self._adversary = critic, adversary
        self._judge, self._teacher = judge or critic, teacher
        self._guide, self._seed = guide * trust, seed
        self._trusted = self._judge is not None and trust >= 0.5
        self._grades = self._trusted and grade_negatives
        self._limits = thresholds or PairConfig()
        self._written: dict[int, _Written] = {}

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        """Credit, guidance, and the written actions as a note, for one decision; see
        :class:`swarm_ui.rollout.Intervene`."""
        found = await self._supervised(trace, environment)
        written = self._written.get(id(trace))
        if written is None:
            return found
        return replace(found or Intervention(), note=(written.negatives, written.shown))

    async def _supervised(self, trace: Trace, environment: Environment) -> Intervention | None:
        rng = random.Random(derive(self._seed, trace.run, trace.seed))
        if not self._trusted and trace.action is not None:
            await self._oppose(trace, trace.action, None, rng)
        if self._judge is None:
            return None
        state = environment.snapshot() if isinstance(environment, Restorable) else None
        # Signed credit is scaled to [0, 1], because the thresholds of right and wrong are.
        table = None if self._critic is None else await assigned(self._critic, trace, state)
        verdicts = table
        if verdicts is None or self._judge is not self._critic:
            verdicts = await assigned(self._judge, trace, state)
        graded = scored_proposals(trace, verdicts.values)
        good = [g.action for g in graded if g.credit > self._limits.good_above]
        if good and self._trusted:
            await self._oppose(trace, rng.choice(good), state, rng)
        elif self._trusted:
            good = await self._taught(trace, state)
        execute = self._guidance(trace, graded, good, rng)
        if table is None:
            return Intervention(execute=execute)
        return Intervention(
            credit=table.values,
            credit_source=table.source,
            rationale=table.rationale,
            execute=execute,
        )

    def negatives(self, trace: Trace) -> Sequence[ScoredAction]:
        """The actions that the adversary wrote for a decision, in screen indices."""
        written = self._written.get(id(trace))
        return [] if written is None else written.negatives

    def shown(self, trace: Trace) -> Sequence[ScoredAction]:
        """The right actions that the teacher showed for a decision, in screen indices."""
        written = self._written.get(id(trace))
        return [] if written is None else written.shown

    def keep_notes(self, episodes: Sequence[Episode]) -> None:
        """Keep what adversary and teacher wrote for the decisions of these episodes."""
        for episode in episodes:
            for record, note in zip(episode.steps, episode.notes, strict=False):
                if note is not None:
                    self._written[id(record.trace)] = _Written(record.trace, *note)

    def __getstate__(self) -> dict[str, object]:
        """The state that is sent to other processes: without the actions that were written for
        traces of this process."""
        return {**self.__dict__, "_written": {}}

    def _guidance(
        self,
        trace: Trace,
        graded: Sequence[ScoredAction],
        good: Sequence[Action],
        rng: random.Random,
    ) -> Action | None:
        draw = rng.random()
        if not good or draw >= self._guide:
            return None
        if trace.action is None:
            return rng.choice(good)
        voted = trace.action.key
        wrong = any(g.action.key == voted and g.credit < self._limits.bad_below for g in graded)
        return rng.choice(good) if wrong else None

    async def _oppose(
        self, trace: Trace, good: Action, state: object | None, rng: random.Random
    ) -> None:
        if self._adversary is None:
            return
        judge = self._judge if self._grades else None

        async def grade(action: Action) -> float | None:
            if judge is None:
                return 0.0
            return await score_of_action(judge, trace, action, state)

        context = Decision(observation=trace.observation)
        written = await negative(
            self._adversary,
            context,
            good,
            grade,
            seed=rng.getrandbits(31),
            below=self._limits.bad_below,
        )
        if written is not None:
            negatives = [ScoredAction(action=written, credit=0.0)]
            self._written[id(trace)] = _Written(trace, negatives, [])

    async def _taught(self, trace: Trace, state: object | None) -> list[Action]:
        """The action that the teacher shows, if the judge finds it right."""
        if self._teacher is None or self._judge is None:
            return []
        seed = derive(self._seed, trace.run, trace.seed, "teacher") % 2**31
        context = Decision(observation=trace.observation)
        action = await self._teacher.show(context, state, seed=seed)
        if action is None:
            return []
        credit = await score_of_action(self._judge, trace, action, state)
        if credit is None or credit <= self._limits.good_above:
            return []
        shown = [ScoredAction(action=action, credit=credit)]
        self._written[id(trace)] = _Written(trace, [], shown)
        return [action]
