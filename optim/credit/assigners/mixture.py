"""Mixtures of assigners, with fixed weights or with the learned weight of a critic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from swarm_ui.credit import CreditTable, EpisodeAssigner, Matrix, credited
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.assigners.assigner import EpisodeCredit, States, Tables
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit
from swarm_ui.optim.credit.trust import CriticTrust
from swarm_ui.trace.records import Episode, StepRecord


class Mixture(EpisodeCredit):
    """The weighted mean of several assigners, each in [0, 1].

    A message that only some of them scored gets the mean of their scores.
    """

    def __init__(self, parts: Sequence[tuple[EpisodeAssigner, float]]) -> None:
        """
        Args:
            parts: assigners and their weights, which are 0 or more, and at least one above 0.
        """
        weights = [weight for _, weight in parts]
        if not parts or min(weights) < 0 or sum(weights) == 0:
            raise ConfigError(
                f"Mixture: weights must be 0 or more, and at least one above 0, got {weights}"
            )
        self._parts = tuple(parts)

    @property
    def name(self) -> str:
        return " + ".join(f"{weight:g} {part.name}" for part, weight in self._parts)

    async def _assess(self, episode: Episode, states: States) -> Tables:
        given = await together([part.assess(episode, states) for part, _ in self._parts])
        weights = [weight for _, weight in self._parts]
        return tuple(
            CreditTable(
                values=blend(
                    [
                        (table.unit().values, [weight] * len(table.values))
                        for table, weight in zip(step, weights, strict=True)
                    ]
                ),
                source=self.name,
                rationale=_together(step),
            )
            for step in zip(*given, strict=True)
        )


class TrustedCritic:
    """A mixture of a critic and the outcome, with a learned weight of the critic.

    The supervisor of a rollout writes the critic's scores into ``StepRecord.credit``.
    :meth:`settle` learns the weight from a batch of such episodes, and returns them with the
    mixture as their credit. With weight 0 the mixture is the outcome alone.
    """

    def __init__(self, trust: CriticTrust | None = None, *, abstentions: bool = False) -> None:
        """``abstentions``: whether abstentions in solved episodes get the credit of the outcome;
        see :class:`~swarm_ui.optim.credit.assigners.critic.OutcomeCredit`."""
        self.trust = trust or CriticTrust()
        self._outcome = OutcomeCredit(abstentions=abstentions)

    async def settle(self, episodes: Sequence[Episode]) -> list[Episode]:
        """Learn from a batch with the critic's scores, then mix its credit with the new weights.

        Messages that the critic did not score get the outcome's score.
        """
        self.trust.learn_from(episodes)
        return [await self.mixed(episode) for episode in episodes]

    async def mixed(self, episode: Episode) -> Episode:
        """One episode with the mixture as its credit; a masked one loses its credit."""
        tables = await self._outcome.assess(episode)
        if episode.success is not None:
            tables = tuple(map(self._mixed, episode.steps, tables))
        return credited(episode, tables)

    def _mixed(self, record: StepRecord, fallback: CreditTable) -> CreditTable:
        if record.credit is None:
            return fallback

        weights = [self.trust.weight(r) for r in range(record.trace.rounds)]
        scores = tuple(
            tuple(None if v is None else 1.0 - v for v in row) if weight < 0 else row
            for row, weight in zip(record.credit, weights, strict=False)
        )
        rationale = tuple(
            f"{text} (weight {weight:.2f})".strip()
            for text, weight in zip(record.rationale, weights, strict=False)
        )
        ours = [abs(weight) for weight in weights]
        return CreditTable(
            values=blend([(scores, ours), (fallback.values, [1.0 - weight for weight in ours])]),
            source=f"{record.credit_source or 'critic'}, weighed against {fallback.source}",
            rationale=rationale or fallback.rationale,
        )


def _together(tables: Sequence[CreditTable]) -> tuple[str, ...]:
    """Merge the rationales of several tables of one step: one text for each round, which names each
    source."""
    by_round = zip_longest(*[table.rationale for table in tables], fillvalue="")
    sources = [table.source for table in tables]
    return tuple(
        "; ".join(f"{who}: {text}" for who, text in zip(sources, texts, strict=True) if text)
        for texts in by_round
    )


def blend(parts: Sequence[tuple[Matrix, Sequence[float]]]) -> Matrix:
    """The weighted mean of matrices of one shape. Cells without a value are left out of the mean.

    Each matrix has a weight for each round. A cell of the result is unscored if no matrix with a
    weight above 0 has a value there.
    """
    shapes = {tuple(len(row) for row in matrix) for matrix, _ in parts}
    if len(shapes) != 1:
        raise ConfigError(
            f"mixture: credit of different shapes: {sorted(shapes)}; "
            "all parts must be credit of the same decision"
        )
    (shape,) = shapes

    def cell(round: int, place: int) -> float | None:
        known = [(w[round], v) for m, w in parts if (v := m[round][place]) is not None]
        total = sum(w for w, _ in known)
        return sum(w * v for w, v in known) / total if total > 0 else None

    return tuple(tuple(cell(r, k) for k in range(n)) for r, n in enumerate(shape))
