"""What edges cost, and how fast they may move beside the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.optimizer import EdgeLearner, EdgeUpdate, check_lengths
from swarm_ui.optim.edges.space import EdgeSample
from swarm_ui.trace.records import EdgeName


class Discountable(Protocol):
    """Evidence that can be forgotten, such as
    :class:`~swarm_ui.optim.edges.thompson.ThompsonEdges`."""

    def discount(self, kept: float) -> None:
        """Keep so much of it."""
        ...


class CostLimit:
    """A limit on the mean cost of a graph, such as its tokens, by a Lagrange multiplier.

    The learner sees ``utility - price * cost / limit``. The price rises while the mean cost is
    above the limit and falls, not below 0, while it is under it: costs within the limit are free.
    """

    def __init__(self, limit: float, *, lr: float = 0.05, price: float = 0.0) -> None:
        """
        Args:
            limit: mean cost allowed, in the unit of the costs.
            lr: change of the price for a mean cost twice the limit.
            price: utility one would give for the limit's cost, to begin with.
        """
        if not limit > 0.0:
            raise ConfigError(f"cost limit: the limit must be above 0, got {limit}")
        self.limit, self.lr, self.price = limit, lr, price

    def charge(
        self, utilities: Sequence[float | None], costs: Sequence[float | None]
    ) -> list[float | None]:
        """Utilities after the price; the price then moves. A masked sample stays ``None``, and
        its cost counts no more than its utility does."""
        if len(utilities) != len(costs):
            raise ConfigError(
                f"cost limit: {len(utilities)} utilities but {len(costs)} costs were given"
            )
        pairs = zip(utilities, costs, strict=True)
        if any(u is not None and c is None for u, c in pairs):
            raise ConfigError("cost limit: a sample with a utility has no cost")
        charged = [
            None if u is None or c is None else u - self.price * c / self.limit
            for u, c in zip(utilities, costs, strict=True)
        ]
        paid = [c for u, c in zip(utilities, costs, strict=True) if u is not None and c is not None]
        if paid:
            over = sum(paid) / len(paid) / self.limit - 1.0
            self.price = max(0.0, self.price + self.lr * over)
        return charged


class Forgetful:
    """Discounts a posterior when the agents behind it have changed: what an edge was worth with
    the old adapters is only a hint of what it is worth with the new ones."""

    def __init__(self, posterior: Discountable, *, kept: float = 0.5) -> None:
        """``kept``: share of the evidence that stays at each change, in [0, 1]."""
        if not 0.0 <= kept <= 1.0:
            raise ConfigError(f"forgetful: the share kept must be in [0, 1], got {kept}")
        self.posterior, self.kept = posterior, kept
        self._versions: dict[str, object] | None = None

    def saw(self, versions: Mapping[str, object]) -> bool:
        """Told the versions of all adapters, whether evidence was discounted.

        The first call only remembers them. An adapter that came or went is a change too.
        """
        before, self._versions = self._versions, dict(versions)
        changed = before is not None and before != self._versions
        if changed:
            self.posterior.discount(self.kept)
        return changed


class SlowClock:
    """Passes every k-th step on, with all samples since the last: edges move slower than weights.

    The distribution stands still in between, so all of them are drawn from what it is.
    """

    def __init__(self, learner: EdgeLearner, every: int) -> None:
        if every < 1:
            raise ConfigError(f"slow clock: every must be at least 1, got {every}")
        self.learner, self.every = learner, every
        self._calls = 0
        self._held: list[tuple[EdgeSample, float | None, Mapping[EdgeName, float], object]] = []

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
        *,
        groups: Sequence[object] | None = None,
    ) -> EdgeUpdate | None:
        """As of the learner; ``None`` where nothing moved yet. Without ``groups``, the samples of
        each call are a group."""
        check_lengths(samples, utilities, credit, groups)
        self._calls += 1
        own = [("call", self._calls)] * len(samples) if groups is None else groups
        given = [{} for _ in samples] if credit is None else credit
        self._held += zip(samples, utilities, given, own, strict=True)
        if self._calls % self.every:
            return None
        held, self._held = self._held, []
        return self.learner.step(
            [h[0] for h in held],
            [h[1] for h in held],
            [h[2] for h in held] if any(h[2] for h in held) else None,
            groups=[h[3] for h in held],
        )
