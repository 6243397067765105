"""Counterfactual credit: the effect of a message on the value of the decision.

The credit is the value of the recorded decision minus its value without the message, or minus the
mean value with other samples of the message (after COMA, and C3 for transcripts of language
models). Only calls that depend on the message are made again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from statistics import stdev

from swarm_ui.credit import CreditTable, as_matrix
from swarm_ui.engine.limits import Limits
from swarm_ui.engine.replay import replay, resample
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.optim.credit.assigners.assigner import calls_of, delivered_messages, unscored_decision
from swarm_ui.optim.credit.assigners.values import DecisionValue, ReplayCost, new_calls
from swarm_ui.trace.records import Trace


class ReplayCredit(ABC):
    """Credit from replays of a decision, for every message that was delivered; signed.

    Implements :class:`~swarm_ui.credit.CreditAssigner`. The adapters must be those of the recorded
    trace, because a changed adapter alone would change the replies.
    """

    def __init__(self, graph: Dag, value: DecisionValue, limits: Limits | None) -> None:
        self._graph, self._value, self._limits = graph, value, limits
        self.cost = ReplayCost()
        """Replays and calls so far."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def calls(self) -> int:
        """Calls of agents so far, including those of the value."""
        return self.cost.calls + (calls_of(self._value) or 0)

    @abstractmethod
    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """See the class; ``None`` where a replay or its value failed."""


class Counterfactual(ReplayCredit):
    """Credit of each message by replaying the decision without it; 0 means no effect."""

    def __init__(
        self, graph: Dag, value: DecisionValue, *, samples: int = 0, limits: Limits | None = None
    ) -> None:
        """
        Args:
            graph: the graph that made the decisions, or one with the same nodes. It gets the edges
                and delays of each trace.
            value: the value of a decision.
            samples: 0 removes the message; ``k`` replaces it by ``k`` new samples, which needs
                agents with a temperature above 0.
            limits: the limits of each replay.
        """
        if samples < 0:
            raise ConfigError(f"Counterfactual: samples must be 0 or more, got {samples}")
        super().__init__(graph, value, limits)
        self._samples = samples

    @property
    def name(self) -> str:
        how = f"resampled ×{self._samples}" if self._samples else "removed"
        return f"counterfactual, {how} ({self._value.name})"

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """The effect of each message on the value of the decision; see :class:`ReplayCredit`."""
        factual = await self._value(trace, state)
        if factual is None:
            why = "the decision itself could not be judged"
            return unscored_decision(trace, self.name, why, signed=True)
        graph = as_recorded(self._graph, trace)
        ids = delivered_messages(trace)
        others = await together([self._otherwise(graph, trace, id, state) for id in ids])
        known = {id: worths for id, worths in zip(ids, others, strict=True) if worths}
        values = {id: factual - sum(w) / len(w) for id, w in known.items()}
        errors = {id: stdev(w) / math.sqrt(len(w)) for id, w in known.items() if len(w) > 1}
        return CreditTable(
            values=as_matrix(trace, values),
            source=self.name,
            signed=True,
            errors=as_matrix(trace, errors) if self._samples > 1 else None,
        )

    async def _otherwise(
        self, graph: Dag, trace: Trace, id: str, state: object | None
    ) -> list[float]:
        """The values of the decisions that replays make without this message, or with other samples
        of it."""
        if self._samples:
            runs = await resample(graph, trace, id, self._samples, limits=self._limits)
        else:
            runs = [await replay(graph, trace, without=[id], limits=self._limits)]
        for run in runs:
            self.cost += ReplayCost(1, new_calls(trace, run))
        worths = await together([self._value(run, state) for run in runs])
        return [worth for worth in worths if worth is not None]


def as_recorded(graph: Dag, trace: Trace) -> Dag:
    """The graph with the edges and delays of the trace.

    Raises:
        ConfigError: the graph has other agents or rounds, so it cannot have made the trace.
    """
    # With 'until' the rounds may have ended early.
    rounds = min(graph.rounds, trace.rounds) if graph.until is not None else graph.rounds
    for what, ours, theirs in (
        ("agents", tuple(sorted(graph.agents)), tuple(sorted(trace.agents))),
        ("rounds", rounds, trace.rounds),
    ):
        if ours != theirs:
            raise ConfigError(
                f"counterfactual credit: run {trace.run} was made with {what} {theirs}, but the "
                f"graph has {ours}; give the graph that made it"
            )
    delays = dict(zip(trace.edges, trace.delays, strict=True)) if trace.delays else {}
    # Conditional edges are part of the graph; a trace does not contain their conditions.
    same = trace.edges == graph.communication_edges and all(
        delays.get(edge, 0) == graph.delays.get(edge, 0) for edge in trace.edges
    )
    return graph if graph.when or same else graph.with_edges(trace.edges, delays=delays)
