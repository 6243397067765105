"""Shapley credit: what each agent adds to the decision, on average over all subsets of agents.

The decision of a subset is the recorded run without the messages of all others. Subsets with the
same result are run once: a message counts only if it reaches the decision through messages that
are present.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Literal

from swarm_ui.credit import CreditTable
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.replay import replay
from swarm_ui.graph.dag import Dag
from swarm_ui.node import derive
from swarm_ui.optim.credit.assigners.assigner import (
    as_matrix,
    delivered_messages,
    unscored_decision,
)
from swarm_ui.optim.credit.assigners.counterfactual import ReplayCredit, as_recorded
from swarm_ui.optim.credit.assigners.shapley_values import MAX_EXACT, Coalition, shapley
from swarm_ui.optim.credit.assigners.values import DecisionValue, ReplayCost, new_calls
from swarm_ui.trace.records import Trace

Players = Literal["agents", "messages"]


class ShapleyCredit(ReplayCredit):
    """Shapley values of a decision's agents, or of its single messages; signed.

    With ``players="agents"``, an agent is present or absent with all its messages, and each of
    its messages gets the value of the agent. The values of all players sum to the value of the
    decision minus that without any message, which is usually 0. Many replays are needed, so this
    is for audits and for calibrating critics, not for every step.
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
            seed: of the permutations that are drawn.
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
    """The value of the decision when only some of the messages are present."""

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
        found = await asyncio.gather(*[self._worth(key) for key in new])
        self._known.update(zip(new, found, strict=True))
        return [self._known[key] for key in keys]

    def _reaching(self, kept: set[str]) -> frozenset[str]:
        """The messages that reach the decision through other present messages."""
        if self._graph.when or self._end is None:
            return frozenset(kept)  # conditional edges depend on the messages
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
