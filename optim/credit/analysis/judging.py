"""Accuracy of scores of replies, by split and by the source of the mistake."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

import msgspec

from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.analysis.calibration import Bin, calibration_error, reliability
from swarm_ui.optim.credit.analysis.ranks import auc_by_bootstrap, ratio_by_bootstrap
from swarm_ui.optim.credit.judged import JudgedEpisode, JudgedScreen
from swarm_ui.stats import Interval

Score = Callable[[JudgedEpisode, JudgedScreen], Coroutine[Any, Any, Sequence[float]]]
"""Gives a score in [0, 1] to each reply to a screen."""
_AGENTS = ("own", "colleague")
_CONCURRENCY = 64


class JudgingFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How well one scorer separates right from wrong replies on one split. Intervals are 95 % and
    resample whole tasks."""

    scorer: str
    split: str
    labels: str
    """``solver`` or ``outcome``; see :data:`~swarm_ui.optim.credit.judged.Labels`."""
    replies: int
    """Distinct replies of agents."""
    right: float | None
    """Share of these replies that are right; ``None``: there are no replies."""
    auc: Interval | None
    """Probability that a right reply of an agent has a higher score than a wrong one; ties count
    half."""
    inside: Interval | None
    """Probability that, of a right and a wrong reply to the same screen, the right one has the
    higher score; over the screens on which the agents disagree."""
    beside_solver: Interval | None
    """For decisions without a right proposal: probability that the solver's reply has a higher
    score than an agent's. Votes and reply probabilities cannot score a reply that no agent
    proposed."""
    kinds: dict[str, Interval | None]
    """AUC of wrong replies against the agents' right replies, by kind of mistake."""
    mistakes: dict[str, int]
    """Number of wrong replies of each kind."""
    error: float | None
    """Expected calibration error on the agents' replies, 10 bins."""
    bins: tuple[Bin, ...]
    """The reliability curve of the agents' replies."""


async def majority(episode: JudgedEpisode, screen: JudgedScreen) -> Sequence[float]:
    """The share of agents that proposed the reply in the last round."""
    return [reply.votes / max(1, screen.voters) for reply in screen.replies]


async def likelihood(episode: JudgedEpisode, screen: JudgedScreen) -> Sequence[float]:
    """The probability of the reply under one agent; 0 if it is unknown, or the reply is
    impossible."""
    return [0.0 if r.logprob is None else math.exp(r.logprob) for r in screen.replies]


async def outcome(episode: JudgedEpisode, screen: JudgedScreen) -> Sequence[float]:
    """The outcome of the episode."""
    return [float(episode.success)] * len(screen.replies)


class _Row(NamedTuple):
    task: int
    screen: int
    kind: str
    right: bool
    score: float


async def judge(
    episodes: Sequence[JudgedEpisode], scorer: str, score: Score, *, bins: int = 10
) -> JudgingFigures:
    """Measure how well a scorer judges the replies of episodes of one split.

    Raises:
        ConfigError: there are no episodes, or they come from several splits.
    """
    splits = {(episode.split, episode.labels) for episode in episodes}
    if len(splits) != 1:
        raise ConfigError(
            f"judge: expected episodes of one split, got {sorted(splits) or 'no episodes'}"
        )
    ((split, labels),) = splits
    rows = await _rows(episodes, score)
    agents = [row for row in rows if row.kind in _AGENTS]
    good = [row for row in agents if row.right]
    mistakes = {
        kind: [row for row in rows if row.kind == kind and not row.right]
        for kind in (*_AGENTS, "adversary")
    }
    lost = {row.screen for row in rows} - {row.screen for row in good}
    unfound = [row for row in rows if row.screen in lost and row.right == (row.kind == "solver")]
    cells = reliability([row.score for row in agents], [row.right for row in agents], bins)
    return JudgingFigures(
        scorer=scorer,
        split=split,
        labels=labels,
        replies=len(agents),
        right=sum(row.right for row in agents) / len(agents) if agents else None,
        auc=_auc(agents),
        inside=_inside(agents),
        beside_solver=_inside([row for row in unfound if row.kind != "adversary"]),
        kinds={kind: _auc([*good, *wrong]) for kind, wrong in mistakes.items()},
        mistakes={kind: len(wrong) for kind, wrong in mistakes.items()},
        error=calibration_error(cells),
        bins=cells,
    )


async def _rows(episodes: Sequence[JudgedEpisode], score: Score) -> list[_Row]:
    places = [(episode, screen) for episode in episodes for screen in episode.screens]
    tasks = {task: k for k, task in enumerate(dict.fromkeys(e.task for e in episodes))}
    found: list[_Row] = []
    for first in range(0, len(places), _CONCURRENCY):
        part = places[first : first + _CONCURRENCY]
        scores = await together([score(*place) for place in part])
        for k, ((episode, screen), given) in enumerate(zip(part, scores, strict=True), first):
            pairs = zip(screen.replies, given, strict=True)
            found += [_Row(tasks[episode.task], k, r.kind, r.right, float(v)) for r, v in pairs]
    return found


def _auc(rows: Sequence[_Row]) -> Interval | None:
    return auc_by_bootstrap(
        [row.score for row in rows], [row.right for row in rows], [row.task for row in rows]
    )


def _inside(rows: Sequence[_Row]) -> Interval | None:
    """Probability that, of a right and a wrong reply to the same screen, the right one has the
    higher score."""
    screens: dict[int, tuple[list[float], list[float]]] = {}
    task_of: dict[int, int] = {}
    for row in rows:
        screens.setdefault(row.screen, ([], []))[row.right].append(row.score)
        task_of[row.screen] = row.task
    won: dict[int, tuple[float, int]] = {}
    for screen, (wrong, right) in screens.items():
        wins = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
        sums, count = won.get(task_of[screen], (0.0, 0))
        won[task_of[screen]] = (sums + wins, count + len(right) * len(wrong))
    return ratio_by_bootstrap(list(won.values()))
