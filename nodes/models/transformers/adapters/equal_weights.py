"""Finds versions of adapters with equal weights, in all layers or in the lower ones.

A team begins with copies of one adapter. After its training, the copies may still be equal in the
lower layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from swarm_ui.nodes.models.transformers.adapters.multi_lora import (
    AdapterWeights,
    equal,
    equal_layers,
)


class EqualWeights:
    """Numbers the versions of adapters: versions with equal weights get the same number.

    A number is never used again for other weights.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._new = count()
        self._layers: dict[tuple[int | None, int | None], int] = {}
        """The number of lowest layers in which two numbers have equal weights."""

    def forget(self) -> None:
        """Forget which versions are equal. Call this when weights have changed in place."""
        self._numbers.clear()
        self._layers.clear()

    def numbered(
        self, versions: Iterable[str], weights: Mapping[str, AdapterWeights]
    ) -> dict[str, int]:
        """The number of each version.

        Args:
            versions: the versions to number; each is in ``weights``.
            weights: the weights of all versions in memory. A version is compared with others once.
        """
        self._numbers = {v: number for v, number in self._numbers.items() if v in weights}
        for version in versions:
            if version not in self._numbers:
                self._numbers[version] = self._number(weights[version], weights)
        return self._numbers

    def layers(
        self,
        one: str | None,
        other: str | None,
        weights: Mapping[str, AdapterWeights],
        count: int,
    ) -> int:
        """How many of the ``count`` layers, counted from the lowest, have equal weights in two
        versions.

        ``None`` is the base model, which has no adapter.
        """
        numbers = self.numbered([v for v in (one, other) if v is not None], weights)
        pair = numbers.get(one or ""), numbers.get(other or "")
        if pair not in self._layers:
            first, second = ({} if v is None else weights[v] for v in (one, other))
            self._layers[pair] = equal_layers(first, second, count)
        return self._layers[pair]

    def _number(self, new: AdapterWeights, weights: Mapping[str, AdapterWeights]) -> int:
        one_of_each = {number: version for version, number in self._numbers.items()}
        for number, version in one_of_each.items():
            if equal(new, weights[version]):
                return number
        return next(self._new)
