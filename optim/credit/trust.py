"""The weight of a critic, learned from how well its scores predict outcomes.

For each round of a decision, the mean score of an episode is correlated with its outcome, among
the episodes of one task, so that a critic gains nothing by knowing which tasks are hard. The weight
is the lower bound of the interval of that correlation, and never below 0. Older episodes count less
with each batch. When all agents do what the critic prefers, its scores no longer vary, and the
outcome takes over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from statistics import fmean

from swarm_ui.credit import Credit, Critic
from swarm_ui.optim.credit.critic import Outcome, credit_of, name_of
from swarm_ui.trace.records import Episode

MEMORY = 0.9
"""Factor on the evidence of earlier episodes with each batch."""
CONFIDENCE = 1.645
"""Standard errors between the correlation and the weight: the one-sided 95 % bound."""
_CLIP = 0.999
"""Bound of correlations, because the Fisher transform is infinite at 1."""

Evidence = tuple[float, float, float, float]
"""About the scores of one round: degrees of freedom (the weighted number of episodes minus one for
each group), and sums of squares of the scores, of products with the outcomes, and of squares of the
outcomes, each about the mean of its group."""


class Trust:
    """A critic weighed against the outcome. The weight of each round starts at 0 and is learned.

    Each call learns from the batch, then gives the weighted mean of the critic's scores and the
    outcome. A message that the critic did not score gets the outcome's.
    """

    def __init__(self, critic: Critic) -> None:
        """``critic``: the critic whose scores are weighed."""
        self.critic = critic
        self.name = f"{name_of(critic)} and {Outcome.name}, weight learned"
        self.rounds: list[Evidence] = []
        """All that was learned; checkpoints hold it."""

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See the class and :class:`swarm_ui.Critic`."""
        given = [credit.unit() for credit in await credit_of(self.critic, episodes)]
        self.learn(
            list(map(_round_means, given)),
            [None if e.success is None else float(e.success) for e in episodes],
            [episode.task for episode in episodes],
        )
        return list(map(self._mixed, given, await Outcome()(episodes)))

    def weight(self, round: int = 0) -> float:
        """The weight of the critic in the credit of a round, in [0, 1)."""
        freedom, scores, both, outcomes = (self.rounds[round:] or [(0.0,) * 4])[0]
        if freedom <= 2.0:
            return 0.0
        spread = scores * outcomes
        correlation = both / math.sqrt(spread) if spread > 1e-18 else 0.0
        centre = math.atanh(max(-_CLIP, min(_CLIP, correlation)))
        return max(0.0, math.tanh(centre - CONFIDENCE / math.sqrt(freedom - 2.0)))

    def learn(
        self,
        scores: Sequence[Sequence[float | None]],
        outcomes: Sequence[float | None],
        groups: Sequence[str],
    ) -> None:
        """Learn from a batch of episodes: their mean scores in each round, ``[episodes][rounds]``
        (``None``: unscored), their outcomes (``None``: masked), and their groups, of which one of a
        single episode gives no evidence."""
        self.rounds += [(0.0,) * 4] * (max(map(len, scores), default=0) - len(self.rounds))
        for round, before in enumerate(self.rounds):
            cells: dict[str, list[tuple[float, float]]] = {}
            for row, outcome, group in zip(scores, outcomes, groups, strict=True):
                score = row[round] if round < len(row) else None
                if score is not None and outcome is not None:
                    cells.setdefault(group, []).append((score, outcome))
            found = [tuple(MEMORY * value for value in before), *map(_evidence, cells.values())]
            self.rounds[round] = tuple(map(sum, zip(*found, strict=True)))  # type: ignore[assignment]

    def _mixed(self, given: Credit, outcome: Credit) -> Credit:
        def cell(score: float | None, known: float | None, weight: float) -> float | None:
            if score is None or known is None:
                return known if score is None else score if weight > 0 else None
            return weight * score + (1.0 - weight) * known

        values = tuple(
            tuple(
                tuple(cell(a, b, self.weight(round)) for a, b in zip(*rows, strict=True))
                for round, rows in enumerate(zip(ours, theirs, strict=True))
            )
            for ours, theirs in zip(given.values, outcome.values, strict=True)
        )
        source = f"{given.source}, weighed against {outcome.source}"
        return Credit(values=values, source=source, rationale=given.rationale)


def _evidence(pairs: Sequence[tuple[float, float]]) -> Evidence:
    x, y = map(fmean, zip(*pairs, strict=True))
    return (
        len(pairs) - 1.0,
        math.fsum((score - x) ** 2 for score, _ in pairs),
        math.fsum((score - x) * (outcome - y) for score, outcome in pairs),
        math.fsum((outcome - y) ** 2 for _, outcome in pairs),
    )


def _round_means(credit: Credit) -> list[float | None]:
    rounds = zip_longest(*credit.values, fillvalue=())
    scored = [[v for row in rows for v in row if v is not None] for rows in rounds]
    return [fmean(values) if values else None for values in scored]
