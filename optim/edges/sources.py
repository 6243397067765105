"""Where a team's graphs come from, learned or not: one protocol."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import torch

from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.graph.topology import predecessors, topological
from swarm_ui.optim.edges.plackett_luce import PlackettLuceEdges
from swarm_ui.optim.edges.space import EdgeSample, EdgeSpace
from swarm_ui.trace.records import EdgeName


class EdgeSource(Protocol):
    """Gives graphs. The learned distributions are sources too."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` graphs; equal generator states give equal graphs."""
        ...

    def mode(self) -> EdgeSample:
        """The one graph to use where none is to be drawn."""
        ...

    def marginals(self) -> dict[EdgeName, float]:
        """Probability of each edge that may occur."""
        ...


class FixedEdges:
    """Always the same graph."""

    def __init__(
        self, names: Iterable[str], edges: Iterable[EdgeName], *, decision: str | None = None
    ) -> None:
        """
        Raises:
            ConfigError: the edges form a cycle, or are not between these nodes.
        """
        self.space = EdgeSpace(names, edges, decision)
        self.names = self.space.names
        try:
            order = topological(predecessors(self.names, self.space.edges))
        except GraphError as error:
            raise ConfigError(f"fixed edges: {error}") from error
        places = [self.space.place[name] for name in order]
        self._sample = self.space.sample(places, range(len(self.space.edges)), 0.0)

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """The graph, ``batch`` times; nothing is drawn."""
        return [self._sample] * batch

    def mode(self) -> EdgeSample:
        return self._sample

    def marginals(self) -> dict[EdgeName, float]:
        return dict.fromkeys(self.space.edges, 1.0)


class RandomEdges:
    """The paper's redraw: a uniform order, then each forward edge with one probability.

    With ``end``, a curriculum from the first density to the last: :meth:`advance` is one step of
    it, linear in the density, and the last density stays.
    """

    def __init__(
        self,
        names: Iterable[str],
        density: float = 0.5,
        *,
        end: float | None = None,
        steps: int = 1,
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
    ) -> None:
        """
        Args:
            names, candidates, decision: as of
            :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`. density: in (0, 1).
            end: density after ``steps`` steps, in (0, 1); ``None``: as ``density``.
            steps: at least 1.
        """
        self.space = EdgeSpace(names, candidates, decision)
        self.names = self.space.names
        self.end = density if end is None else end
        for what, value in (("density", density), ("end", self.end)):
            if not 0.0 < value < 1.0:
                raise ConfigError(f"random edges: {what} must be in (0, 1), got {value}")
        if steps < 1:
            raise ConfigError(f"random edges: steps must be at least 1, got {steps}")
        self.start, self.steps, self.done = density, steps, 0

    @property
    def density(self) -> float:
        """As it is now."""
        return self.start + (self.end - self.start) * self.done / self.steps

    def advance(self) -> float:
        """One step of the curriculum; the new density."""
        self.done = min(self.steps, self.done + 1)
        return self.density

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` independent graphs, with their log-probability."""
        return self._law().sample(batch, generator)

    def mode(self) -> EdgeSample:
        """The most probable graph: no edges up to a density of one half, else a full one."""
        return self._law().mode()

    def marginals(self) -> dict[EdgeName, float]:
        return self._law().marginals()

    def _law(self) -> PlackettLuceEdges:
        log_odds = math.log(self.density / (1.0 - self.density))
        logits = torch.full((len(self.space.edges),), log_odds)
        return PlackettLuceEdges(self.space, torch.zeros(len(self.names)), logits)
