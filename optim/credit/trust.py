"""The weight of a critic, learned from how well its scores predict outcomes.

For each round of a decision, the mean score of an episode is correlated with its outcome, among
the episodes of one group. A group is a task, so that a critic gains nothing by knowing which tasks
are hard. The weight is the lower bound of the interval of that correlation, and never below 0: a
critic without evidence has no weight, and a critic that prefers wrong actions ends at 0. Older
episodes count less with each batch, so that the weight adapts to a changing team. When all agents
do what the critic prefers, its scores no longer vary. They then no longer explain the remaining
failures, and the outcome takes over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import Episode

_CLIP = 0.999
"""Bound of correlations, because the Fisher transform is infinite at 1."""


class RoundTrust(msgspec.Struct, kw_only=True):
    """Evidence about a critic's scores in one round of the decisions."""

    freedom: float = 0.0
    """Degrees of freedom: the weighted number of episodes, minus one for each group."""
    scores: float = 0.0
    """Sum of squares of the scores about the mean of their group."""
    both: float = 0.0
    """Sum of products of scores and outcomes, both about the mean of their group."""
    outcomes: float = 0.0
    """Sum of squares of the outcomes about the mean of their group."""

    @property
    def correlation(self) -> float:
        """The correlation of scores and outcomes; 0 if one of them does not vary."""
        spread = self.scores * self.outcomes
        return self.both / math.sqrt(spread) if spread > 1e-18 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustConfig:
    """Settings for learning the weight of a critic."""

    memory: float = 0.9
    """Factor on the evidence of earlier episodes with each batch, in [0, 1]; 1 forgets nothing."""
    confidence: float = 1.645
    """Standard errors between the correlation and the weight; 1.645 is the one-sided 95 % bound."""
    prior: tuple[float, float] = (0.0, 0.0)
    """A correlation assumed at the start, and the number of episodes it counts for. It is not
    forgotten. Without a prior, a team that never succeeds (or never fails) gives no evidence, and
    its critic no weight."""
    inverted: bool = False
    """Whether a critic that is surely worse than none gets a negative weight, which inverts its
    scores. If not, it gets 0."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.memory <= 1.0:
            raise ConfigError(f"critic trust: memory must be in [0, 1], got {self.memory}")
        if self.confidence < 0:
            raise ConfigError(f"critic trust: confidence must be >= 0, got {self.confidence}")
        if not -1.0 < self.prior[0] < 1.0 or self.prior[1] < 0:
            raise ConfigError(
                "critic trust: prior must be a correlation and a number of episodes, got "
                f"{self.prior}"
            )


class CriticTrust:
    """The weight of a critic relative to the outcome, by round. It starts at 0 and is learned."""

    def __init__(self, config: TrustConfig | None = None) -> None:
        self.config = config or TrustConfig()
        self.rounds: list[RoundTrust] = []

    def weight(self, round: int = 0) -> float:
        """The weight of the critic in the credit of a round, in [0, 1); below 0 only if
        ``inverted``."""
        known = self.rounds[round] if round < len(self.rounds) else RoundTrust()
        believed, worth = self.config.prior
        total = known.freedom + worth
        if total <= 2.0:
            return 0.0
        seen = math.atanh(max(-_CLIP, min(_CLIP, known.correlation)))
        centre = (known.freedom * seen + worth * math.atanh(believed)) / total
        error = self.config.confidence / math.sqrt(total - 2.0)
        if self.config.inverted and centre + error < 0:
            return math.tanh(centre + error)
        return max(0.0, math.tanh(centre - error))

    def learn(
        self,
        scores: Sequence[Sequence[float | None]],
        outcomes: Sequence[float | None],
        groups: Sequence[str] | None = None,
    ) -> None:
        """Learn from a batch of episodes.

        Args:
            scores: ``[episodes][rounds]``, the mean score of an episode's messages in a round;
                ``None``: unscored.
            outcomes: the outcome of each episode; ``None``: masked by a fault.
            groups: the group of each episode; ``None``: all are one group. A group of one episode
                gives no evidence.
        """
        groups = [""] * len(scores) if groups is None else groups
        if not len(scores) == len(outcomes) == len(groups):
            raise ConfigError(
                f"CriticTrust: {len(scores)} episodes with scores, {len(outcomes)} outcomes and "
                f"{len(groups)} groups; expected equal numbers"
            )
        for round in range(max([len(self.rounds), *map(len, scores)])):
            if round == len(self.rounds):
                self.rounds.append(RoundTrust())
            known = self.rounds[round]
            for name in ("freedom", "scores", "both", "outcomes"):
                setattr(known, name, self.config.memory * getattr(known, name))
            cells: dict[str, list[tuple[float, float]]] = {}
            for row, outcome, group in zip(scores, outcomes, groups, strict=True):
                score = row[round] if round < len(row) else None
                if score is not None and outcome is not None:
                    cells.setdefault(group, []).append((score, outcome))
            for pairs in cells.values():
                _add(known, pairs)

    def learn_from(self, episodes: Sequence[Episode]) -> None:
        """:meth:`learn` from the critic's scores in ``StepRecord.credit``, by task."""
        self.learn(
            [round_means(episode) for episode in episodes],
            [None if e.success is None else float(e.success) for e in episodes],
            [episode.task for episode in episodes],
        )

    def state_dict(self) -> dict[str, object]:
        """The learned state as plain numbers; see :meth:`load_state_dict`."""
        return {"rounds": [msgspec.structs.asdict(known) for known in self.rounds]}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Load the result of :meth:`state_dict`.

        Raises:
            ConfigError: the state has another form.
        """
        try:
            self.rounds = msgspec.convert(state["rounds"], list[RoundTrust])
        except (KeyError, msgspec.ValidationError) as error:
            raise ConfigError(f"CriticTrust: cannot read this state: {error}") from error


def round_means(episode: Episode) -> list[float | None]:
    """Mean credit of an episode's scored messages, by round."""
    rounds = zip_longest(*[record.credit or () for record in episode.steps], fillvalue=())
    scored = [[v for row in rows for v in row if v is not None] for rows in rounds]
    return [fmean(values) if values else None for values in scored]


def _add(known: RoundTrust, pairs: Sequence[tuple[float, float]]) -> None:
    """Add the evidence of one group of episodes: pairs of score and outcome, relative to the means
    of the group."""
    x, y = map(fmean, zip(*pairs, strict=True))
    known.freedom += len(pairs) - 1
    known.scores += math.fsum((score - x) ** 2 for score, _ in pairs)
    known.both += math.fsum((score - x) * (outcome - y) for score, outcome in pairs)
    known.outcomes += math.fsum((outcome - y) ** 2 for _, outcome in pairs)
