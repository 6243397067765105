"""Calibration of a critic: its scores against outcomes, and against a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from swarm_ui.credit import Credit
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.analysis.ranks import auc, auc_by_bootstrap, ratio_by_bootstrap
from swarm_ui.stats import Interval, wilson
from swarm_ui.trace.records import Episode

Key = TypeVar("Key")
Item = TypeVar("Item")

Tables = Sequence[Credit]
"""The credit that a critic gave: one record for each episode."""


class Scored(NamedTuple):
    """One message with its score."""

    episode: int
    step: int
    round: int
    agent: str
    score: float
    outcome: float
    right: bool | None
    """Whether the reference judges the message right; ``None``: it does not judge it."""


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """The messages with scores in one interval."""

    low: float
    high: float
    score: float
    """Mean score of the messages in the bin."""
    right: Interval
    """Share of right messages, according to the reference."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Calibration statistics of all messages, or of those of one round or one agent."""

    scored: int
    mean: float | None
    agreement: float | None
    """Share of messages on which score and reference agree (right is above 0.5). A score of 0.5
    never agrees. ``None``: no reference."""
    auc: Interval | None
    """AUC of the score against the reference; interval over episodes."""
    outcome_auc: Interval | None
    """AUC of the score against the episode's outcome."""
    inside: Interval | None
    """Probability that, of a right and a wrong message in one decision, the right one has the
    higher score. 0.5: the score cannot tell them apart. ``None``: no decision has both."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The calibration of one critic: how well its scores predict which messages are right."""

    source: str
    reference: str
    unscored: int
    """Messages that the reference judged and this critic did not."""
    whole: Part
    episode_auc: Interval | None
    """AUC of an episode's mean score against its outcome."""
    error: float | None
    """Mean distance between score and share right, over the bins, weighted by size. ``None`` for
    signed credit, which is not a probability."""
    bins: tuple[Bin, ...]
    """The reliability curve; empty for signed credit."""
    by_round: dict[int, Part]
    by_agent: dict[str, Part]


def calibration(
    episodes: Sequence[Episode], tables: Tables, reference: Tables | None = None, *, bins: int = 10
) -> Calibration:
    """The report on one critic; masked episodes are left out.

    ``reference`` is credit that is taken as right, such as that of a scripted critic. Without it,
    scores are compared with outcomes only. The ``bins`` of the reliability curve are of equal
    width.
    """
    if bins < 1:
        raise ConfigError(f"calibration: bins must be at least 1, got {bins}")
    rows = scored(episodes, tables, reference)
    known = [row for row in rows if row.right is not None]
    judged = [
        _bit(v)
        for c in reference or ()
        for matrix in c.unit().values
        for row in matrix
        for v in row
    ]
    signed = any(credit.signed for credit in tables)
    right = [bool(row.right) for row in known]
    cells = () if signed else reliability([row.score for row in known], right, bins)
    by_episode = _grouped(rows, lambda row: row.episode)
    return Calibration(
        source=_source(tables),
        reference="outcome" if reference is None else _source(reference),
        unscored=max(0, sum(bit is not None for bit in judged) - len(known)),
        whole=part(rows),
        episode_auc=auc_by_bootstrap(
            [_mean_score(found) for found in by_episode.values()],
            [found[0].outcome > 0.5 for found in by_episode.values()],
            range(len(by_episode)),
        ),
        error=calibration_error(cells),
        bins=cells,
        by_round={k: part(found) for k, found in _grouped(rows, lambda row: row.round).items()},
        by_agent={k: part(found) for k, found in _grouped(rows, lambda row: row.agent).items()},
    )


def scored(
    episodes: Sequence[Episode], tables: Tables, reference: Tables | None = None
) -> list[Scored]:
    """All scored messages of unmasked episodes, in order.

    Raises:
        ConfigError: there are not as many tables as episodes.
    """
    given = [None] * len(episodes) if reference is None else reference
    if not len(episodes) == len(tables) == len(given):
        raise ConfigError(
            f"calibration: {len(episodes)} episodes, but credit for {len(tables)} and a "
            f"reference for {len(given)}; "
            "expected one table of each for every episode"
        )
    rows: list[Scored] = []
    for number, (episode, credit, truth) in enumerate(zip(episodes, tables, given, strict=True)):
        if episode.success is None:
            continue
        known = None if truth is None else truth.unit().values
        for k, (record, matrix) in enumerate(zip(episode.steps, credit.unit().values, strict=True)):
            right = None if known is None else known[k]
            for r, row in enumerate(matrix):
                for a, (agent, score) in enumerate(zip(record.trace.agents, row, strict=True)):
                    if score is not None:
                        bit = None if right is None else _bit(right[r][a])
                        outcome = float(episode.success)
                        rows.append(Scored(number, k, r, agent, score, outcome, bit))
    return rows


def part(rows: Sequence[Scored]) -> Part:
    """Compute the calibration statistics of these messages."""
    known = [row for row in rows if row.right is not None]
    agreeing = sum(row.score != 0.5 and (row.score > 0.5) == row.right for row in known)
    return Part(
        scored=len(rows),
        mean=_mean_score(rows) if rows else None,
        agreement=agreeing / len(known) if known else None,
        auc=_auc(known, [bool(row.right) for row in known]),
        outcome_auc=_auc(rows, [row.outcome > 0.5 for row in rows]),
        inside=_inside_auc(known),
    )


def _auc(rows: Sequence[Scored], right: Sequence[bool]) -> Interval | None:
    return auc_by_bootstrap([row.score for row in rows], right, [row.episode for row in rows])


def _inside_auc(rows: Sequence[Scored]) -> Interval | None:
    """Probability that a right message scores higher than a wrong one of the same decision."""
    sums: dict[int, tuple[float, int]] = {}
    for (episode, _), messages in _grouped(rows, lambda row: (row.episode, row.step)).items():
        right = [bool(row.right) for row in messages]
        chance = auc([row.score for row in messages], right)
        if chance is not None:
            pairs = sum(right) * (len(right) - sum(right))
            won, count = sums.get(episode, (0.0, 0))
            sums[episode] = (won + chance * pairs, count + pairs)
    return ratio_by_bootstrap(list(sums.values()))


def reliability(scores: Sequence[float], right: Sequence[bool], bins: int = 10) -> tuple[Bin, ...]:
    """The share of right messages in each of ``bins`` score intervals of equal width; empty
    intervals are left out.

    ``scores`` are in [0, 1].
    """
    pairs = list(zip(scores, right, strict=True))
    members = _grouped(pairs, lambda pair: min(bins - 1, int(pair[0] * bins)))
    found = []
    for number, inside in sorted(members.items()):
        share = wilson([label for _, label in inside])
        assert share is not None
        mean = math.fsum(score for score, _ in inside) / len(inside)
        low, high = number / bins, (number + 1) / bins
        found.append(Bin(low=low, high=high, score=mean, right=share))
    return tuple(found)


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Expected calibration error: the mean distance between the score and the share of right
    messages in a bin, weighted by the size of the bin. ``None`` without bins."""
    total = sum(cell.right.n for cell in bins)
    if not total:
        return None
    return math.fsum(abs(cell.score - cell.right.mean) * cell.right.n for cell in bins) / total


def _mean_score(rows: Sequence[Scored]) -> float:
    return math.fsum(row.score for row in rows) / len(rows)


def _bit(value: float | None) -> bool | None:
    return None if value is None or value == 0.5 else value > 0.5


def _source(tables: Tables) -> str:
    return next((table.source for table in tables), "")


def _grouped(rows: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    groups: dict[Key, list[Item]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
