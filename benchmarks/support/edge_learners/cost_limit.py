"""A limit on the mean cost of the sampled graphs."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.errors import ConfigError


class CostLimit:
    """A limit on the mean cost of a graph, such as its tokens, by a Lagrange multiplier.

    The learner gets ``utility - price * cost / limit``. The price rises while the mean cost is
    above the limit. It falls, but not below 0, while the mean cost is below the limit.
    """

    def __init__(self, limit: float, *, lr: float = 0.05, price: float = 0.0) -> None:
        """
        Args:
            limit: mean cost allowed, in the unit of the costs.
            lr: change of the price at a mean cost of twice the limit.
            price: the initial price, as the utility that a cost equal to the limit subtracts.
        """
        if not limit > 0.0:
            raise ConfigError(f"cost limit: the limit must be above 0, got {limit}")
        self.limit, self.lr, self.price = limit, lr, price

    def charge(
        self, utilities: Sequence[float | None], costs: Sequence[float | None]
    ) -> list[float | None]:
        """Subtract the price from the utilities, then update the price.

        A masked sample stays ``None``, and its cost does not count.
        """
        if len(utilities) != len(costs):
            raise ConfigError(
                f"cost limit: {len(utilities)} utilities but {len(costs)} costs were given; "
                "expected one cost for each utility"
            )
        kept = [cost for u, cost in zip(utilities, costs, strict=True) if u is not None]
        paid = [cost for cost in kept if cost is not None]
        if len(paid) < len(kept):
            raise ConfigError(
                "cost limit: a sample with a utility has no cost; "
                "give the cost of every sample that has a utility"
            )
        charged = [
            None if u is None else u - self.price * (cost or 0.0) / self.limit
            for u, cost in zip(utilities, costs, strict=True)
        ]
        if paid:
            excess = sum(paid) / len(paid) / self.limit - 1.0
            self.price = max(0.0, self.price + self.lr * excess)
        return charged
