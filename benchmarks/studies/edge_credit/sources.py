"""Sources of credit for the edges of a team that plays split facts.

The scripted critic knows the task. Leaving a message out needs no solution: it replays decisions
and plays on from them, which costs calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from benchmarks.studies.edge_credit.plan import CRITIC, ERROR_SHARE, ERRORS, OUTCOME, WITHOUT
from benchmarks.studies.split.learning import AGENTS
from benchmarks.studies.split_model.controls import answers
from swarm_ui.credit import CreditAssigner, CreditTable, as_matrix, credited
from swarm_ui.environments.phone.split import SplitPhone
from swarm_ui.experiment.split_facts import SplitTeams
from swarm_ui.optim.credit.assigners.counterfactual import Counterfactual
from swarm_ui.optim.credit.assigners.critic import NoisyCritic, ScriptedCritic
from swarm_ui.optim.credit.assigners.values import OutcomeValue
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.credit import episode_edge_credit
from swarm_ui.rollout import WAIT, GraphPolicy
from swarm_ui.trace.records import EdgeName, Episode, Trace


class NeededValues:
    """A scripted critic that knows which app holds each needed value, and the value.

    A message in which an agent abstains is right (1.0) if it says a value that the task needs from
    the agent's own app, else wrong (0.0). It does not know who needs to hear it. An action is
    graded by the environment's solver. Implements :class:`~swarm_ui.credit.CreditAssigner`.
    """

    calls = 0
    name = "scripted critic of needed values"

    def __init__(self) -> None:
        self._actions = ScriptedCritic(partial(SplitPhone, agents=AGENTS))

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """A grade for every message."""
        table = await self._actions.assign(trace, state)
        values = {
            message.id: value
            for message in trace.messages
            if (value := table.values[message.round][trace.agents.index(message.sender)])
            is not None
        }
        task, seed, _ = trace.run.rsplit("/", 2)
        facts = answers(AGENTS, task, int(seed)).facts
        said = {message.id: message for message in trace.messages}
        for id in trace.passed:
            own = [value for app, value in facts if app == said[id].sender]
            values[id] = float(any(value in said[id].content for value in own))
        return CreditTable(values=as_matrix(trace, values), source=self.name)


class CriticCredit:
    """Credit of edges from an assigner that grades single decisions without calls."""

    calls = 0

    def __init__(self, critic: CreditAssigner, discount: float) -> None:
        self._critic, self._discount = critic, discount

    async def __call__(
        self, episode: Episode, sample: EdgeSample, states: Sequence[object]
    ) -> Mapping[EdgeName, float]:
        """See :class:`~benchmarks.studies.split.learning.EdgeCredit`."""
        pairs = zip(episode.steps, states, strict=True)
        tables = [await self._critic.assign(record.trace, state) for record, state in pairs]
        return _of_edges(episode, tables, sample, self._discount)


class WithoutMessage:
    """Credit of edges from replays of an episode's first decision without each of its messages.

    Agents say the same at every decision of an episode, so the others would cost calls and say
    nothing new. If the action stays the same, so does the outcome, because agents and phone are
    deterministic. Otherwise the other action is executed and the team plays on to the end.
    """

    def __init__(self, discount: float) -> None:
        self._discount = discount
        self._teams = SplitTeams(SplitPhone(agents=AGENTS))
        self.calls = 0
        """Calls of agents so far, in replays and in continuations."""

    async def __call__(
        self, episode: Episode, sample: EdgeSample, states: Sequence[object]
    ) -> Mapping[EdgeName, float]:
        """See :class:`~benchmarks.studies.split.learning.EdgeCredit`."""
        team = self._teams.team(episode.task, episode.seed, sample.edges)
        credit = Counterfactual(team, _Ends(episode, GraphPolicy(team)))
        first = msgspec.structs.replace(episode, steps=episode.steps[:1])
        tables = [await credit.assign(first.steps[0].trace, states[0])]
        self.calls += credit.calls
        return _of_edges(first, tables, sample, self._discount)


class _Ends:
    """The outcome of an episode, known for the actions that it executed."""

    name = "outcome"

    def __init__(self, episode: Episode, policy: GraphPolicy) -> None:
        self._success = episode.success
        self._executed = {step.trace.run: (step.executed or WAIT).key for step in episode.steps}
        self._other = OutcomeValue(partial(SplitPhone, agents=AGENTS), policy)

    @property
    def calls(self) -> int:
        """Calls of agents in continuations."""
        return self._other.calls

    async def __call__(self, trace: Trace, state: object | None) -> float | None:
        """``None`` without an action: the acting agent's own message was left out."""
        if trace.action is None or self._success is None:
            return None
        if trace.action.key == self._executed[trace.run]:
            return float(self._success)
        return await self._other(trace, state)


Source = CriticCredit | WithoutMessage


def source(arm: str, discount: float, seed: int) -> Source | None:
    """The source of an arm, or ``None`` for the arm that learns from the outcome alone."""
    if arm == OUTCOME:
        return None
    if arm == WITHOUT:
        return WithoutMessage(discount)
    assert arm in (CRITIC, ERRORS), arm
    critic = NeededValues()
    if arm == ERRORS:
        return CriticCredit(NoisyCritic(critic, flip=ERROR_SHARE, seed=seed), discount)
    return CriticCredit(critic, discount)


def _of_edges(
    episode: Episode, tables: Sequence[CreditTable], sample: EdgeSample, discount: float
) -> Mapping[EdgeName, float]:
    # Agents without a path to the acting one are not called, so some edges of a sample are unused.
    return episode_edge_credit([credited(episode, tables)], edges=sample.edges, discount=discount)
