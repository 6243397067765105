"""Credit from decisions that would have been: without a message, or with only some of them.

The value of a decision is the grade that a judge gives to its action. Leave-one-out and resampling
(after COMA, and C3 for transcripts of language models) compare the recorded decision with replays
in which one message is left out or drawn again. Shapley values compare all coalitions. Only calls
that depend on a changed message are made again, so the team must still have the adapters of the
episodes.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from swarm_ui.credit import Credit, Judge
from swarm_ui.engine.replay import replay, resample
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.node import derive
from swarm_ui.optim.credit.critic import calls_of, delivered, name_of, states_of
from swarm_ui.rollout.episode import no_decision
from swarm_ui.trace.records import Episode, Trace

_CONCURRENCY = 16
"""Episodes whose decisions are replayed at the same time."""
MAX_EXACT = 6
"""The largest number of players for exact Shapley values."""


class Values(NamedTuple):
    """A value for each message or player, with standard errors where sampled."""

    values: dict[str, float]
    errors: dict[str, float] | None = None


class _Replays:
    """Credit from replays of each decision, for every message that was delivered; signed."""

    name: str

    def __init__(self, team: Dag, judge: Judge) -> None:
        self._team, self._judge, self._made = team, judge, 0

    @property
    def calls(self) -> int:
        """Calls of agents in replays so far, and those that the judge made."""
        return self._made + (calls_of(self._judge) or 0)

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """Unscored is what a replay or its grade could not find; see :class:`swarm_ui.Critic`.

        Raises:
            ConfigError: the team cannot have played an episode, or the judge needs a state that it
                cannot have.
        """
        gate = asyncio.Semaphore(_CONCURRENCY)

        async def one(episode: Episode) -> Credit:
            async with gate:
                return await self._credit(episode)

        return await together([one(episode) for episode in episodes])

    async def _credit(self, episode: Episode) -> Credit:
        if episode.success is None:
            return Credit.unscored(episode, self.name, f"masked: {episode.fault}")
        states = await states_of(self._judge, episode)
        found = await together(
            [
                self._decision(as_recorded(self._team, record.trace), record.trace, state)
                for record, state in zip(episode.steps, states, strict=True)
            ]
        )
        return Credit.of(
            episode,
            [decision.values for decision in found],
            source=self.name,
            signed=True,
            errors=[d.errors or {} for d in found] if any(d.errors for d in found) else None,
        )

    async def _decision(self, team: Dag, trace: Trace, state: object) -> Values:
        raise NotImplementedError

    async def _value(self, trace: Trace, state: object) -> float | None:
        """The value of a decision; ``None`` if a fault prevented it, or it cannot be judged."""
        if no_decision(trace) is not None:
            return None
        if trace.action is None:
            return 0.0
        (grade,) = await self._judge.grade(trace.observation, [trace.action], state)
        return grade

    async def _without(self, team: Dag, trace: Trace, ids: Sequence[str]) -> Trace:
        return self._counted(trace, await replay(team, trace, without=ids))

    def _counted(self, before: Trace, after: Trace) -> Trace:
        agents, old = frozenset(before.agents), {id(call) for call in before.calls}
        self._made += sum(c.node in agents and id(c) not in old for c in after.calls)
        return after


class LeaveOneOut(_Replays):
    """The value of the decision minus its value without the message; 0 means no effect.

    With ``samples`` the message is not left out but drawn again, and the credit is the value minus
    the mean over the samples. It needs agents with a temperature above 0.
    """

    def __init__(self, team: Dag, judge: Judge, *, samples: int = 0) -> None:
        """
        Args:
            team: the graph that made the decisions, or one with the same nodes. It gets the edges
                and delays of each trace.
            judge: grades the actions of decisions.
            samples: 0 leaves the message out; ``k`` replaces it by ``k`` new samples.
        """
        if samples < 0:
            raise ConfigError(f"LeaveOneOut: samples must be 0 or more, got {samples}")
        super().__init__(team, judge)
        self._samples = samples
        how = f"resampled ×{samples}" if samples else "removed"
        self.name = f"counterfactual, {how} ({name_of(judge)})"

    async def _decision(self, team: Dag, trace: Trace, state: object) -> Values:
        factual = await self._value(trace, state)
        if factual is None:
            return Values({})
        ids = delivered(trace)
        others = await together([self._otherwise(team, trace, id, state) for id in ids])
        known = {id: worths for id, worths in zip(ids, others, strict=True) if worths}
        return Values(
            {id: factual - fmean(worths) for id, worths in known.items()},
            {id: stdev(w) / math.sqrt(len(w)) for id, w in known.items() if len(w) > 1},
        )

    async def _otherwise(self, team: Dag, trace: Trace, id: str, state: object) -> list[float]:
        """The values of the decisions without this message, or with other samples of it."""
        if self._samples:
            drawn = await resample(team, trace, id, self._samples)
            runs = [self._counted(trace, run) for run in drawn]
        else:
            runs = [await self._without(team, trace, [id])]
        worths = await together([self._value(run, state) for run in runs])
        return [worth for worth in worths if worth is not None]


class Shapley(_Replays):
    """Shapley values of a decision's agents, or of its single messages.

    The worth of a coalition is the value of the decision without the messages of all others. With
    ``players="agents"``, an agent is present or absent with all its messages, and each of its
    messages gets the value of the agent. The values of all players sum to the value of the
    decision minus its value without any message, which is usually 0. Many replays are needed, so
    use this for audits and for the calibration of critics, not for every step.
    """

    def __init__(
        self,
        team: Dag,
        judge: Judge,
        *,
        players: Literal["agents", "messages"] = "agents",
        exact_up_to: int = MAX_EXACT,
        pairs: int = 16,
        seed: int = 0,
    ) -> None:
        """
        Args:
            team, judge: see :class:`LeaveOneOut`.
            players: the players of the game.
            exact_up_to, pairs: see :func:`shapley`.
            seed: the seed of the permutations that are drawn.
        """
        super().__init__(team, judge)
        self._players, self._seed = players, seed
        self._exact_up_to, self._pairs = exact_up_to, pairs
        self.name = f"Shapley over {players} ({name_of(judge)})"

    async def _decision(self, team: Dag, trace: Trace, state: object) -> Values:
        ids = delivered(trace)
        by_agent = self._players == "agents"
        player = {m.id: m.sender if by_agent else m.id for m in trace.messages if m.id in ids}
        known: dict[frozenset[str], float | None] = {}

        async def look_up(kept: frozenset[str]) -> None:
            left_out = [id for id in ids if id not in kept]
            run = await self._without(team, trace, left_out) if left_out else trace
            known[kept] = await self._value(run, state)

        async def worth(coalitions: Sequence[Coalition]) -> list[float | None]:
            # Coalitions in which the same messages reach the decision are replayed once.
            keys = [_reaching(team, trace, {i for i in ids if player[i] in c}) for c in coalitions]
            await together([look_up(k) for k in dict.fromkeys(keys) if k not in known])
            return [known[key] for key in keys]

        rng = random.Random(derive(self._seed, "shapley", trace.run, trace.seed))
        names = list(dict.fromkeys(player.values()))
        found = await shapley(names, worth, rng, exact_up_to=self._exact_up_to, pairs=self._pairs)
        if found is None:
            return Values({})
        values, errors = found
        return Values(
            {id: values[player[id]] for id in ids},
            {id: errors[player[id]] for id in ids} if errors else None,
        )


Coalition = frozenset[str]


async def shapley(
    players: Sequence[str],
    worth: Callable[[Sequence[Coalition]], Awaitable[Sequence[float | None]]],
    rng: random.Random,
    *,
    exact_up_to: int = MAX_EXACT,
    pairs: int = 16,
) -> Values | None:
    """Shapley values of the players of any game: their mean marginal contributions over all orders.

    The values sum to the worth of all players minus the worth of the empty coalition.

    Args:
        players: the names of the players, each once.
        worth: gives the worths of many coalitions at a time; ``None``: unknown.
        rng: draws permutations, if there are more players than ``exact_up_to``.
        exact_up_to: the largest number of players for an exact result from all ``2 ** n``
            coalitions, without errors.
        pairs: number of pairs of a random permutation and its reverse, which reduces the variance;
            at least 2, because one pair has no standard error.

    Returns:
        the values; ``None`` if too few worths are known.
    """
    if len(set(players)) != len(players) or pairs < 2:
        raise ConfigError(
            f"shapley: expected different players and at least 2 pairs, got {', '.join(players)} "
            f"and pairs={pairs}"
        )
    n = len(players)
    if n <= exact_up_to:
        orders: list[tuple[str, ...]] = []
        asked = [frozenset(c) for size in range(n + 1) for c in combinations(players, size)]
    else:
        drawn = [tuple(rng.sample(list(players), n)) for _ in range(pairs)]
        orders = [order for one in drawn for order in (one, one[::-1])]
        asked = list(dict.fromkeys(frozenset(o[:k]) for o in orders for k in range(n + 1)))
    known = {c: w for c, w in zip(asked, await worth(asked), strict=True) if w is not None}
    if orders:
        return _over_orders(orders, known)
    if len(known) < len(asked):
        return None
    return Values(
        {
            p: math.fsum(
                (known[c | {p}] - known[c]) / (n * math.comb(n - 1, len(c)))
                for c in asked
                if p not in c
            )
            for p in players
        }
    )


def _over_orders(
    orders: Sequence[tuple[str, ...]], known: Mapping[Coalition, float]
) -> Values | None:
    """The mean marginal contributions over pairs of an order and its reverse."""

    def added(order: Sequence[str]) -> dict[str, float] | None:
        parts = [frozenset(order[:k]) for k in range(len(order) + 1)]
        if any(part not in known for part in parts):
            return None
        return {p: known[parts[k + 1]] - known[parts[k]] for k, p in enumerate(order)}

    both = [(added(one), added(other)) for one, other in zip(orders[::2], orders[1::2])]  # noqa: B905
    means = [{p: (a[p] + b[p]) / 2 for p in a} for a, b in both if a and b]
    if len(means) < 2:
        return None
    return Values(
        {p: fmean(mean[p] for mean in means) for p in orders[0]},
        {p: stdev(mean[p] for mean in means) / math.sqrt(len(means)) for p in orders[0]},
    )


def _reaching(team: Dag, trace: Trace, kept: set[str]) -> frozenset[str]:
    """Of the messages that are kept, those that reach the decision, directly or through others."""
    end = next((m.id for m in reversed(trace.messages) if m.sender == team.output), None)
    if team.when or team.until is not None or end is None:
        return frozenset(kept)  # conditional edges and `until` depend on the messages
    everything = set(delivered(trace))
    heard = {call.id: call.heard for call in trace.calls}
    reached: set[str] = set()
    waiting = [end]
    while waiting:
        id = waiting.pop()
        if id not in reached and (id in kept or id not in everything):
            reached.add(id)
            waiting += heard.get(id, ())
    return frozenset(reached & everything)


def as_recorded(graph: Dag, trace: Trace) -> Dag:
    """The graph with the edges and delays of the trace.

    Raises:
        ConfigError: the graph has other agents or rounds, so it cannot have made the trace.
    """
    # With 'until' the rounds may have ended early.
    rounds = min(graph.rounds, trace.rounds) if graph.until is not None else graph.rounds
    ours, theirs = (sorted(graph.agents), rounds), (sorted(trace.agents), trace.rounds)
    if ours != theirs:
        raise ConfigError(
            f"counterfactual credit: run {trace.run} was made with agents and rounds {theirs}, but "
            f"the graph has {ours}; give the graph that made it"
        )
    delays = dict(zip(trace.edges, trace.delays, strict=True)) if trace.delays else {}
    # Conditional edges are part of the graph; a trace does not contain their conditions.
    same = trace.edges == graph.communication_edges and all(
        delays.get(edge, 0) == graph.delays.get(edge, 0) for edge in trace.edges
    )
    return graph if graph.when or same else graph.with_edges(trace.edges, delays=delays)
