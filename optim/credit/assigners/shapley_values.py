"""Shapley values of any game, and their use as credit.

The Shapley value of a player is its mean marginal contribution over all orders of the players. For
few players it is computed exactly from all coalitions. For more players it is estimated from random
permutations, each with its reverse (antithetic pairs, which reduce the variance). In both cases the
values sum to the worth of all players minus the worth of the empty coalition.

For credit, the worth of a coalition is the value of the recorded decision without the messages of
all other players. A message matters only if it reaches the decision through other messages of the
coalition, so coalitions in which the same messages reach the decision are replayed once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, stdev
from typing import Literal

import msgspec

from swarm_ui.credit import CreditTable, as_matrix
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.replay import replay
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.node import derive
from swarm_ui.optim.credit.assigners.assigner import delivered_messages, unscored_decision
from swarm_ui.optim.credit.assigners.counterfactual import ReplayCredit, as_recorded
from swarm_ui.optim.credit.assigners.values import DecisionValue, ReplayCost, new_calls
from swarm_ui.trace.records import Trace

Coalition = frozenset[str]
Worth = Callable[[Sequence[Coalition]], Awaitable[Sequence[float | None]]]
"""Gives the worth of each coalition; ``None``: it is unknown."""

MAX_EXACT = 6


class ShapleyValues(msgspec.Struct, frozen=True, kw_only=True):
    """The Shapley value of each player."""

    values: dict[str, float]
    errors: dict[str, float] | None = None
    """Standard errors; ``None`` if the values are exact."""
    total: float
    """The sum of the values: the worth of all players minus that of the empty coalition."""


async def shapley(
    players: Sequence[str],
    worth: Worth,
    rng: random.Random,
    *,
    exact_up_to: int = MAX_EXACT,
    pairs: int = 16,
) -> ShapleyValues | None:
    """Shapley values of all players; ``None`` if too few worths are known.

    Args:
        players: the names of the players, each once.
        worth: called with many coalitions at a time.
        rng: draws the permutations, if there are more players than ``exact_up_to``.
        exact_up_to: the largest number of players for an exact result from all ``2 ** n``
            coalitions, which must all be known.
        pairs: the number of pairs of permutations; at least 2, because one pair has no standard
            error. At least two must be known.
    """
    if len(set(players)) != len(players):
        raise ConfigError(
            f"shapley: two players have the same name: {', '.join(players)}; "
            "give each player another name"
        )
    if pairs < 2:
        raise ConfigError(f"shapley: pairs must be at least 2, got {pairs}")
    if len(players) <= exact_up_to:
        return await _exact(players, worth)
    return await _sampled(players, worth, rng, pairs)


async def _exact(players: Sequence[str], worth: Worth) -> ShapleyValues | None:
    n = len(players)
    coalitions = [frozenset(c) for size in range(n + 1) for c in combinations(players, size)]
    found = dict(zip(coalitions, await worth(coalitions), strict=True))
    known = {c: v for c, v in found.items() if v is not None}
    if len(known) < len(coalitions):
        return None
    values = {
        player: math.fsum(
            (known[c | {player}] - known[c]) / (n * math.comb(n - 1, len(c)))
            for c in coalitions
            if player not in c
        )
        for player in players
    }
    return ShapleyValues(values=values, total=known[coalitions[-1]] - known[coalitions[0]])


async def _sampled(
    players: Sequence[str], worth: Worth, rng: random.Random, pairs: int
) -> ShapleyValues | None:
    orders: list[tuple[str, ...]] = []
    for _ in range(pairs):
        order = rng.sample(list(players), len(players))
        orders += [tuple(order), tuple(reversed(order))]
    prefixes = [frozenset(order[:k]) for order in orders for k in range(len(players) + 1)]
    coalitions = list(dict.fromkeys(prefixes))
    found = dict(zip(coalitions, await worth(coalitions), strict=True))
    added = [_marginals(order, found) for order in orders]
    means = [
        {p: (one[p] + other[p]) / 2 for p in players}
        for one, other in zip(added[::2], added[1::2], strict=True)
        if one is not None and other is not None
    ]
    everybody, nobody = found[frozenset(players)], found[frozenset()]
    if len(means) < 2 or everybody is None or nobody is None:
        return None
    values = {p: fmean(mean[p] for mean in means) for p in players}
    errors = {p: stdev(mean[p] for mean in means) / math.sqrt(len(means)) for p in players}
    return ShapleyValues(values=values, errors=errors, total=everybody - nobody)


def _marginals(
    order: Sequence[str], found: dict[Coalition, float | None]
) -> dict[str, float] | None:
    """The marginal contribution of each player in this permutation."""
    worths = [found[frozenset(order[:k])] for k in range(len(order) + 1)]
    known = [w for w in worths if w is not None]
    if len(known) < len(worths):
        return None
    return {p: known[k + 1] - known[k] for k, p in enumerate(order)}


Players = Literal["agents", "messages"]


class ShapleyCredit(ReplayCredit):
    """Shapley values of a decision's agents, or of its single messages; signed.

    With ``players="agents"``, an agent is present or absent with all its messages, and each of
    its messages gets the value of the agent. The values of all players sum to the value of the
    decision minus its value without any message, which is usually 0. Many replays are needed, so
    use this for audits and for the calibration of critics, not for every step.
    """

    def __init__(
        self,
        graph: Dag,
        value: DecisionValue,
        *,
        players: Players = "agents",
        exact_up_to: int = MAX_EXACT,
        pairs: int = 16,
        seed: int = 0,
        limits: Limits | None = None,
    ) -> None:
        """
        Args:
            graph, value, limits: see
                :class:`~swarm_ui.optim.credit.assigners.counterfactual.Counterfactual`.
            players: the players of the game.
            exact_up_to, pairs: see :func:`~swarm_ui.optim.credit.assigners.shapley_values.shapley`.
            seed: the seed of the permutations that are drawn.
        """
        super().__init__(graph, value, limits)
        self._players, self._seed = players, seed
        self._exact_up_to, self._pairs = exact_up_to, pairs

    @property
    def name(self) -> str:
        return f"Shapley over {self._players} ({self._value.name})"

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """See :class:`ReplayCredit`; all ``None`` if a value could not be found."""
        game = _Game(as_recorded(self._graph, trace), trace, self._value, state, self._limits)
        ids = delivered_messages(trace)
        sender = {m.id: m.sender if self._players == "agents" else m.id for m in trace.messages}
        said: dict[str, list[str]] = {}
        for id in ids:
            said.setdefault(sender[id], []).append(id)

        async def worth(coalitions: Sequence[Coalition]) -> Sequence[float | None]:
            return await game.worths([{id for p in c for id in said[p]} for c in coalitions])

        rng = random.Random(derive(self._seed, "shapley", trace.run, trace.seed))
        found = await shapley(
            list(said), worth, rng, exact_up_to=self._exact_up_to, pairs=self._pairs
        )
        self.cost += game.cost
        if found is None:
            why = "a coalition's decision could not be judged"
            return unscored_decision(trace, self.name, why, signed=True)

        def spread(by_player: Mapping[str, float]) -> dict[str, float]:
            return {id: by_player[sender[id]] for id in ids}

        return CreditTable(
            values=as_matrix(trace, spread(found.values)),
            source=self.name,
            rationale=(f"all agents together add {found.total:.3g}",) * trace.rounds,
            signed=True,
            errors=None if found.errors is None else as_matrix(trace, spread(found.errors)),
        )


class _Game:
    """The game of a decision: the worth of a set of messages is the value of the decision if only
    these messages are present."""

    def __init__(
        self,
        graph: Dag,
        trace: Trace,
        value: DecisionValue,
        state: object | None,
        limits: Limits | None,
    ) -> None:
        self._graph, self._trace, self._value = graph, trace, value
        self._state, self._limits = state, limits
        self._all = frozenset(delivered_messages(trace))
        self._heard = {call.message: call.heard for call in trace.calls}
        self._end = next((m.id for m in reversed(trace.messages) if m.sender == graph.output), None)
        self._known: dict[frozenset[str], float | None] = {}
        self.cost = ReplayCost()

    async def worths(self, coalitions: Sequence[set[str]]) -> list[float | None]:
        keys = [self._reaching(kept) for kept in coalitions]
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        found = await together([self._worth(key) for key in new])
        self._known.update(zip(new, found, strict=True))
        return [self._known[key] for key in keys]

    def _reaching(self, kept: set[str]) -> frozenset[str]:
        """The given messages that reach the decision directly or through other given messages."""
        if self._graph.when or self._graph.until is not None or self._end is None:
            return frozenset(kept)  # conditional edges and `until` depend on the messages
        reached: set[str] = set()
        open_ids = [self._end] if self._end not in self._all or self._end in kept else []
        while open_ids:
            id = open_ids.pop()
            if id not in reached:
                reached.add(id)
                open_ids += [h for h in self._heard.get(id, ()) if h not in self._all or h in kept]
        return frozenset(reached & self._all)

    async def _worth(self, kept: frozenset[str]) -> float | None:
        if kept == self._all:
            return await self._value(self._trace, self._state)
        sent = (message.id for message in self._trace.messages)
        without = [id for id in sent if id in self._all and id not in kept]
        run = await replay(self._graph, self._trace, without=without, limits=self._limits)
        self.cost += ReplayCost(1, new_calls(self._trace, run))
        return await self._value(run, self._state)
