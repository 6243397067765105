"""Credit from decisions that would have been: without a message, or with only some agents.

The value of a decision is the grade that a judge gives to its action. Leave-one-out and resampling
(after COMA, and C3 for transcripts of language models) compare it with replays in which one message
is left out or drawn again; Shapley values compare all coalitions of agents. Only calls that depend
on a changed message are made again, so the team must still have the adapters of the episodes.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from swarm_ui.credit import Credit, Judge
from swarm_ui.engine.replay import replay, resample
from swarm_ui.engine.tasks import together
from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.optim.credit.critic import name_of, states_of
from swarm_ui.rollout.episode import no_decision
from swarm_ui.trace.records import Episode, Trace

_CONCURRENCY = 16
"""Episodes whose decisions are replayed at the same time."""
MOST_AGENTS = 8
"""The largest team for Shapley values, which need ``2 ** agents`` replays of each decision."""


class _Replays:
    """Credit from replays of each decision, for every message that was delivered; signed."""

    name: str

    def __init__(self, team: Dag, judge: Judge) -> None:
        self._team, self._judge = team, judge

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """Unscored is what a replay or its grade could not find. Raises ``ConfigError`` if the team
        cannot have played an episode, or the judge needs a state that it cannot have."""
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def one(episode: Episode) -> Credit:
            if episode.success is None:
                return Credit.of(episode, [], source=self.name)
            async with gate:
                states = await states_of(self._judge, episode)
                traces = [record.trace for record in episode.steps]
                teams = [as_recorded(self._team, trace) for trace in traces]
                places = zip(teams, traces, states, strict=True)
                found = await together([self._decision(*place) for place in places])
            return Credit.of(episode, found, source=self.name, signed=True)

        return await together([one(episode) for episode in episodes])

    async def _decision(self, team: Dag, trace: Trace, state: object) -> dict[str, float]:
        raise NotImplementedError

    async def _value(self, trace: Trace, state: object) -> float | None:
        """The value of a decision; ``None`` if a fault prevented it, or it cannot be judged."""
        if no_decision(trace) is not None:
            return None
        if trace.action is None:
            return 0.0
        (grade,) = await self._judge.grade(trace.observation, [trace.action], state)
        return grade


class LeaveOneOut(_Replays):
    """The value of the decision minus its value without the message; 0 means no effect.

    With ``samples`` the message is not left out but drawn again, and the credit is the value minus
    the mean over the samples. It needs agents with a temperature above 0.
    """

    def __init__(self, team: Dag, judge: Judge, *, samples: int = 0) -> None:
        """``team``: the graph that made the decisions, or one with the same nodes, which gets the
        edges and delays of each trace. ``judge``: grades the actions of decisions."""
        super().__init__(team, judge)
        self._samples = samples
        how = f"resampled ×{samples}" if samples else "removed"
        self.name = f"counterfactual, {how} ({name_of(judge)})"

    async def _decision(self, team: Dag, trace: Trace, state: object) -> dict[str, float]:
        factual = await self._value(trace, state)
        if factual is None:
            return {}

        async def effect(id: str) -> float | None:
            if self._samples:
                runs = await resample(team, trace, id, self._samples)
            else:
                runs = [await replay(team, trace, without=[id])]
            worths = await together([self._value(run, state) for run in runs])
            known = [worth for worth in worths if worth is not None]
            return factual - fmean(known) if known else None

        ids = _delivered(trace)
        effects = await together([effect(id) for id in ids])
        return {id: v for id, v in zip(ids, effects, strict=True) if v is not None}


class Shapley(_Replays):
    """Shapley values of a decision's agents: their mean marginal contributions over all orders.

    The worth of a coalition is the value of the decision without the messages of all other agents.
    Each message gets the value of its agent. Every coalition is a replay: use it for audits.
    """

    def __init__(self, team: Dag, judge: Judge) -> None:
        """See :class:`LeaveOneOut`. Raises ``ConfigError`` for more than 8 agents."""
        super().__init__(team, judge)
        self.name = f"Shapley over agents ({name_of(judge)})"
        if len(team.agents) > MOST_AGENTS:
            raise ConfigError(
                f"Shapley: expected at most {MOST_AGENTS} agents, got {len(team.agents)}, whose "
                "coalitions are too many to replay; use LeaveOneOut"
            )

    async def _decision(self, team: Dag, trace: Trace, state: object) -> dict[str, float]:
        ids = _delivered(trace)
        sender = {m.id: m.sender for m in trace.messages if m.id in ids}
        agents = list(dict.fromkeys(sender.values()))
        sizes = range(len(agents) + 1)
        coalitions = [frozenset(some) for n in sizes for some in combinations(agents, n)]

        async def worth(coalition: frozenset[str]) -> float | None:
            left_out = [id for id in ids if sender[id] not in coalition]
            run = await replay(team, trace, without=left_out) if left_out else trace
            return await self._value(run, state)

        worths = await together([worth(coalition) for coalition in coalitions])
        known = {c: w for c, w in zip(coalitions, worths, strict=True) if w is not None}
        values = shapley_values(agents, known) if len(known) == len(coalitions) else {}
        return {id: values[sender[id]] for id in ids if values}


def shapley_values(players: Sequence[str], worths: dict[frozenset[str], float]) -> dict[str, float]:
    """Shapley values of a game from the worths of all its coalitions."""
    n, values = len(players), dict[str, float]()
    for p in players:
        others = {c: worth for c, worth in worths.items() if p not in c}
        shares = [(worths[c | {p}] - w) / math.comb(n - 1, len(c)) for c, w in others.items()]
        values[p] = math.fsum(shares) / n
    return values


def as_recorded(graph: Dag, trace: Trace) -> Dag:
    """The graph with the edges and delays of the trace. Raises ``ConfigError`` if the graph has
    other agents or rounds, so that it cannot have made the trace."""
    early = graph.until is not None and trace.rounds < graph.rounds
    ours = sorted(graph.agents), trace.rounds if early else graph.rounds
    if ours != (theirs := (sorted(trace.agents), trace.rounds)):
        raise ConfigError(
            f"counterfactual credit: run {trace.run} was made with agents and rounds {theirs}, but "
            f"the graph has {ours}; give the graph that made it"
        )
    if graph.when:  # conditional edges are in no trace
        return graph
    delays = dict(zip(trace.edges, trace.delays, strict=True)) if trace.delays else {}
    return graph.with_edges(trace.edges, delays=delays)


def _delivered(trace: Trace) -> list[str]:
    """Ids of the agents' messages, without those of calls that failed, in their order."""
    agents = frozenset(trace.agents)
    failed = {call.id for call in trace.calls if call.error is not None}
    return [m.id for m in trace.messages if m.sender in agents and m.id not in failed]
