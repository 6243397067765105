"""Mixtures of assigners, with fixed weights or with the learned weight of a critic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

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
        self,
        trust: CriticTrust | None = None,
        *,
        fallback: EpisodeAssigner | None = None,
        group: Callable[[Episode], str] = lambda episode: episode.task,
    ) -> None:
        """
        Args:
            trust: learns the weights.
            fallback: the other part of the mixture; default: the outcome.
            group: the group of an episode; episodes are compared within groups.
        """
        self.trust = trust or CriticTrust()
        self._fallback = fallback or OutcomeCredit()
        self._group = group

    async def settle(
        self,
        episodes: Sequence[Episode],
        states: Sequence[Sequence[object]] | None = None,
    ) -> list[Episode]:
        """Learn from a batch, then mix its credit with the new weights.

        Args:
            episodes: with the critic's scores. Other messages get the fallback's score.
            states: snapshots of each episode, for a fallback that needs them.
        """
        self.trust.learn_from(episodes, self._group)
        given = [None] * len(episodes) if states is None else states
        return [await self.mixed(episode, at) for episode, at in zip(episodes, given, strict=True)]

    async def mixed(self, episode: Episode, states: Sequence[object] | None = None) -> Episode:
        """One episode with the mixture as its credit; a masked one loses its credit."""
        tables = await self._fallback.assess(episode, states)
        if episode.success is None:
            return credited(episode, tables)
        mixed = [
            msgspec.structs.replace(
                table.unit(),
                values=self._both(record.credit, table.unit().values),
                source=self._source(record, table),
                rationale=self._why(record, table),
                errors=None,
            )
            for record, table in zip(episode.steps, tables, strict=True)
        ]
        return credited(episode, mixed)

    def _source(self, record: StepRecord, fallback: CreditTable) -> str:
        if record.credit is None:
            return fallback.source
        return f"{record.credit_source or 'critic'}, weighed against {fallback.source}"

    def _why(self, record: StepRecord, fallback: CreditTable) -> tuple[str, ...]:
        """The critic's rationale, with the weight of its scores."""
        if record.credit is None or not record.rationale:
            return fallback.rationale
        return tuple(
            f"{told} (weight {self.trust.weight(r):.2f})".strip()
            for r, told in enumerate(record.rationale)
        )

    def _both(self, critic: Matrix | None, fallback: Matrix) -> Matrix:
        if critic is None:
            return fallback

        def rest(round: int) -> float:
            return 1.0 - abs(self.trust.weight(round))

        turned = tuple(
            tuple(None if v is None else 1.0 - v for v in row) if self.trust.weight(r) < 0 else row
            for r, row in enumerate(critic)
        )
        return blend([(turned, lambda r: abs(self.trust.weight(r))), (fallback, rest)])


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
