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
from benchmarks.support.critics import NoisyCritic, OutcomeJudge
from swarm_ui.action import Action
from swarm_ui.credit import Credit, Critic, credited
from swarm_ui.environments.phone.split import SplitPhone
from swarm_ui.experiment.split_facts import SplitTeams
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.counterfactual import LeaveOneOut
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.credit import episode_edge_credit
from swarm_ui.rollout import WAIT, GraphPolicy
from swarm_ui.trace.records import EdgeName, Episode


class NeededValues:
    """A scripted critic that knows which app holds each needed value, and the value.

    A message in which an agent abstains is right (1.0) if it says a value that the task needs from
    the agent's own app, else wrong (0.0). It does not know who needs to hear it. An action is
    graded by the environment's solver.
    """

    name = "scripted critic of needed values"

    def __init__(self) -> None:
        self._actions = ScriptedCritic(partial(SplitPhone, agents=AGENTS))

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See :class:`swarm_ui.Critic`."""
        given = await self._actions(episodes)
        return [self._all(episode, credit) for episode, credit in zip(episodes, given, strict=True)]

    def _all(self, episode: Episode, credit: Credit) -> Credit:
        found = []
        for record, matrix in zip(episode.steps, credit.values, strict=True):
            trace = record.trace
            places = {(m.round, m.sender): m.id for m in trace.messages}
            values = {
                places[round, agent]: value
                for round, row in enumerate(matrix)
                for agent, value in zip(trace.agents, row, strict=True)
                if value is not None
            }
            facts = answers(AGENTS, episode.task, episode.seed).facts
            for message in map(trace.message, trace.passed):
                own = [value for app, value in facts if app == message.sender]
                values[message.id] = float(any(value in message.content for value in own))
            found.append(values)
        return Credit.of(episode, found, source=self.name)


class CriticCredit:
    """Credit of edges from a critic that makes no calls."""

    calls = 0

    def __init__(self, critic: Critic, discount: float) -> None:
        self._critic, self._discount = critic, discount

    async def __call__(self, episode: Episode, sample: EdgeSample) -> Mapping[EdgeName, float]:
        """See :class:`~benchmarks.studies.split.learning.EdgeCredit`."""
        (credit,) = await self._critic([episode])
        return _of_edges(episode, credit, sample, self._discount)


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

    async def __call__(self, episode: Episode, sample: EdgeSample) -> Mapping[EdgeName, float]:
        """See :class:`~benchmarks.studies.split.learning.EdgeCredit`."""
        team = self._teams.team(episode.task, episode.seed, sample.edges)
        critic = LeaveOneOut(team, _Ends(episode, GraphPolicy(team)))
        first = msgspec.structs.replace(episode, steps=episode.steps[:1])
        (credit,) = await critic([first])
        self.calls += critic.calls
        return _of_edges(first, credit, sample, self._discount)


class _Ends(OutcomeJudge):
    """The outcome of an episode, which is known for the action that it executed first."""

    def __init__(self, episode: Episode, policy: GraphPolicy) -> None:
        super().__init__(partial(SplitPhone, agents=AGENTS), policy)
        self._first = (episode.steps[0].executed or WAIT).key
        self._success = None if episode.success is None else float(episode.success)

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        other = [action for action in actions if action.key != self._first]
        found = iter(await super().grade(observation, other, state))
        return [self._success if a.key == self._first else next(found) for a in actions]


Source = CriticCredit | WithoutMessage


def source(arm: str, discount: float, seed: int) -> Source | None:
    """The source of an arm, or ``None`` for the arm that learns from the outcome alone."""
    if arm == OUTCOME:
        return None
    if arm == WITHOUT:
        return WithoutMessage(discount)
    assert arm in (CRITIC, ERRORS), arm
    critic: Critic = NeededValues()
    if arm == ERRORS:
        return CriticCredit(NoisyCritic(critic, flip=ERROR_SHARE, seed=seed), discount)
    return CriticCredit(critic, discount)


def _of_edges(
    episode: Episode, credit: Credit, sample: EdgeSample, discount: float
) -> Mapping[EdgeName, float]:
    # Agents without a path to the acting one are not called, so some edges of a sample are unused.
    return episode_edge_credit([credited(episode, credit)], edges=sample.edges, discount=discount)
