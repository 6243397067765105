"""Finds versions of adapters with equal weights: a team begins with copies of one adapter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from swarm_ui.nodes.models.transformers.adapters.multi_lora import (
    AdapterWeights,
    equal,
)


class EqualWeights:
    """Numbers the versions of adapters: versions with equal weights get the same number.

    A number is never used again for other weights.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._new = count()

    def forget(self) -> None:
        """Forget which versions are equal. Call this when weights have changed in place."""
        self._numbers.clear()

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

    def _number(self, new: AdapterWeights, weights: Mapping[str, AdapterWeights]) -> int:
        one_of_each = {number: version for version, number in self._numbers.items()}
        for number, version in one_of_each.items():
            if equal(new, weights[version]):
                return number
        return next(self._new)
