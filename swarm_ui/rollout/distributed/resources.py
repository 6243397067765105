"""The resources of a cluster that a worker needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

Amount = Annotated[float, Meta(ge=0.0)]
_SLACK = 1e-9


class WorkerResources(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that Ray reserves for a worker. Ray only counts them and limits no usage."""

    cpus: Amount = 1.0
    gpus: Amount = 0.0
    """May be a fraction, for several workers on one GPU."""
    custom: dict[str, Amount] = {}
    """Custom resources, such as ``{"emulator": 1}``; a node declares its own with ``ray start
    --resources='{"emulator": 4}'``."""

    @property
    def options(self) -> dict[str, Any]:
        """The options of a Ray actor."""
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "resources": dict(self.custom)}

    @property
    def amounts(self) -> dict[str, float]:
        """The amounts above 0, by Ray's names."""
        every = {"CPU": self.cpus, "GPU": self.gpus, **self.custom}
        return {name: amount for name, amount in every.items() if amount > 0}

    def fits(self, nodes: Iterable[Mapping[str, float]]) -> int:
        """The number of workers for which nodes have room; each is on one node.

        Args:
            nodes: the resources of each node, by Ray's names.
        """
        return sum(self._fit(node) for node in nodes)

    def lacking(self, nodes: Iterable[Mapping[str, float]]) -> str:
        """The resources of which no node has enough for one worker, as text; empty if a node has
        room.
        """
        known = list(nodes)
        if self.fits(known):
            return ""
        short = []
        for name, amount in self.amounts.items():
            most = max((node.get(name, 0.0) for node in known), default=0.0)
            if most + _SLACK < amount:
                short.append(f"{name} {amount:g} (most on a node: {most:g})")
        return ", ".join(short) or f"{self} together on one node"

    def _fit(self, node: Mapping[str, float]) -> int:
        shares = [int(node.get(n, 0.0) / amount + _SLACK) for n, amount in self.amounts.items()]
        return min(shares, default=1)

    def __str__(self) -> str:
        return ", ".join(f"{name} {amount:g}" for name, amount in self.amounts.items()) or "nothing"
