"""Mixtures of assigners, with fixed weights or with the learned weight of a critic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from swarm_ui.credit import CreditTable, EpisodeAssigner, Matrix, credited
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.assigners.assigner import unscored
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit
from swarm_ui.optim.credit.trust import CriticTrust
from swarm_ui.trace.records import Episode, StepRecord

Weight = Callable[[int], float]
"""Of a round."""


class Mixture:
    """The weighted mean of several assigners, each in [0, 1].

    A message that only some of them scored gets the mean of their scores. Implements
    :class:`~swarm_ui.credit.EpisodeAssigner`.
    """

    def __init__(self, parts: Sequence[tuple[EpisodeAssigner, float]]) -> None:
        """
        Args:
            parts: assigners and their weights, none below 0 and not all 0.
        """
        weights = [weight for _, weight in parts]
        if not parts or min(weights) < 0 or sum(weights) == 0:
            raise ConfigError(f"Mixture: weights must be 0 or more and not all 0, got {weights}")
        self._parts = tuple(parts)

    @property
    def name(self) -> str:
        return " + ".join(f"{weight:g} {part.name}" for part, weight in self._parts)

    async def assess(
        self, episode: Episode, states: Sequence[object] | None = None
    ) -> tuple[CreditTable, ...]:
        """See :class:`~swarm_ui.credit.EpisodeAssigner`."""
        if episode.success is None:
            return unscored(episode, self.name)
        given = await asyncio.gather(*[part.assess(episode, states) for part, _ in self._parts])
        weights = [_fixed(weight) for _, weight in self._parts]
        return tuple(
            CreditTable(
                values=blend([(t.unit().values, w) for t, w in zip(step, weights, strict=True)]),
                source=self.name,
                rationale=_together(step),
            )
            for step in zip(*given, strict=True)
        )


class TrustedCritic:
    """A mixture of a critic and a fallback (the outcome), with a learned weight of the critic.

    The scores of the critic are in ``StepRecord.credit``, where a rollout's supervisor wrote them.
    :meth:`settle` learns the weight from a batch of such episodes, and returns them with the
    mixture as their credit. With weight 0 that is the fallback alone.
    """

    def __init__(
        self, trust: CriticTrust | None = None, *, fallback: EpisodeAssigner | None = None
    ) -> None:
        """
        Args:
            trust: learns the weights.
            fallback: the other part of the mixture; default: the outcome.
        """
        self.trust = trust or CriticTrust()
        self._fallback = fallback or OutcomeCredit()

    async def settle(self, episodes: Sequence[Episode]) -> list[Episode]:
        """Learn from a batch with the critic's scores, then mix its credit with the new weights.

        Messages that the critic did not score get the fallback's score.
        """
        self.trust.learn_from(episodes)
        return [await self.mixed(episode) for episode in episodes]

    async def mixed(self, episode: Episode) -> Episode:
        """One episode with the mixture as its credit; a masked one loses its credit."""
        tables = await self._fallback.assess(episode)
        if episode.success is not None:
            tables = tuple(
                self._mixed(record, table.unit())
                for record, table in zip(episode.steps, tables, strict=True)
            )
        return credited(episode, tables)

    def _mixed(self, record: StepRecord, fallback: CreditTable) -> CreditTable:
        if record.credit is None:
            return fallback

        def weight(round: int) -> float:
            return abs(self.trust.weight(round))

        scores = tuple(
            tuple(None if v is None else 1.0 - v for v in row) if self.trust.weight(r) < 0 else row
            for r, row in enumerate(record.credit)
        )
        rationale = tuple(
            f"{text} (weight {self.trust.weight(r):.2f})".strip()
            for r, text in enumerate(record.rationale)
        )
        return CreditTable(
            values=blend([(scores, weight), (fallback.values, lambda r: 1.0 - weight(r))]),
            source=f"{record.credit_source or 'critic'}, weighed against {fallback.source}",
            rationale=rationale or fallback.rationale,
        )


def _together(tables: Sequence[CreditTable]) -> tuple[str, ...]:
    """The rationales of all tables of a step by round, each with its source."""
    most = max(len(table.rationale) for table in tables)
    return tuple(
        "; ".join(
            f"{table.source}: {table.rationale[r]}"
            for table in tables
            if r < len(table.rationale) and table.rationale[r]
        )
        for r in range(most)
    )


def _fixed(weight: float) -> Weight:
    return lambda round: weight


def blend(parts: Sequence[tuple[Matrix, Weight]]) -> Matrix:
    """The weighted mean of matrices of one shape; each cell is over the matrices that have a value.

    A cell stays unscored if only matrices of weight 0 have a value.
    """
    shapes = {tuple(len(row) for row in matrix) for matrix, _ in parts}
    if len(shapes) != 1:
        raise ConfigError(f"mixture: credit of different shapes: {sorted(shapes)}")
    (shape,) = shapes

    def cell(round: int, place: int) -> float | None:
        known = [
            (weight(round), value)
            for matrix, weight in parts
            if (value := matrix[round][place]) is not None
        ]
        total = sum(w for w, _ in known)
        return sum(w * v for w, v in known) / total if total > 0 else None

    return tuple(tuple(cell(r, k) for k in range(n)) for r, n in enumerate(shape))
