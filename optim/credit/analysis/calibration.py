"""Does a critic's score mean what it says? Against outcomes, and against what is really right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from swarm_ui.credit import CreditTable
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.analysis.ranks import auc, auc_by_bootstrap, by_bootstrap
from swarm_ui.stats import Interval, wilson
from swarm_ui.trace.records import Episode

T = TypeVar("T")

Tables = Sequence[Sequence[CreditTable]]
"""``[episodes][steps]``."""


class Scored(NamedTuple):
    """One message with its score."""

    episode: int
    step: int
    round: int
    agent: str
    score: float
    outcome: float
    right: bool | None
    """Whether a reference says so; ``None``: it does not say."""


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of about the same score."""

    low: float
    high: float
    score: float
    """Mean score."""
    right: Interval
    """Share that is really right."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of all messages, or of one round or one agent."""

    scored: int
    mean: float | None
    agreement: float | None
    """Share of messages that score and reference call the same (right above 0.5); a score of 0.5
    agrees with nobody. ``None``: no reference."""
    auc: Interval | None
    """Of the score against the reference; interval over episodes."""
    outcome_auc: Interval | None
    """Of the score against the episode's outcome."""
    inside: Interval | None
    """Chance that of two colleagues in one decision, one right and one wrong, the right one has
    the higher score: what credit is for. 0.5: it cannot tell them apart; ``None``: they never
    differ."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """How far a critic's scores can be believed."""

    source: str
    reference: str
    unscored: int
    """Messages that the reference judged and this assigner did not."""
    whole: Part
    episode_auc: Interval | None
    """Of an episode's mean score against its outcome."""
    error: float | None
    """Mean distance between score and share right, over the bins, weighted by size; ``None`` for
    signed credit, whose 0.5 is "made no difference" and no probability."""
    bins: tuple[Bin, ...]
    """Empty for signed credit."""
    by_round: dict[int, Part]
    by_agent: dict[str, Part]


def calibration(
    episodes: Sequence[Episode],
    tables: Tables,
    reference: Tables | None = None,
    *,
    bins: int = 10,
) -> Calibration:
    """The report on one assigner.

    Args:
        episodes: that were judged; masked ones are left out.
        tables: its credit for them.
        reference: credit that knows what is right, such as the reference solver's; without it
            only the outcome is compared with.
        bins: of the reliability curve, of equal width.
    """
    if bins < 1:
        raise ConfigError(f"calibration: bins must be at least 1, got {bins}")
    rows = scored(episodes, tables, reference)
    known = [row for row in rows if row.right is not None]
    judged = _count(reference) if reference is not None else 0
    signed = any(table.signed for steps in tables for table in steps)
    cells = () if signed else _bins(known, bins)
    total = sum(cell.right.n for cell in cells)
    error = math.fsum(abs(c.score - c.right.mean) * c.right.n for c in cells) / max(1, total)
    return Calibration(
        source=_source(tables),
        reference="outcome" if reference is None else _source(reference),
        unscored=max(0, judged - len(known)),
        whole=_part(rows),
        episode_auc=_episode_auc(rows),
        error=error if cells else None,
        bins=cells,
        by_round={
            r: _part([x for x in rows if x.round == r]) for r in _seen(x.round for x in rows)
        },
        by_agent={
            a: _part([x for x in rows if x.agent == a]) for a in _seen(x.agent for x in rows)
        },
    )


def scored(
    episodes: Sequence[Episode], tables: Tables, reference: Tables | None = None
) -> list[Scored]:
    """All scored messages of unmasked episodes, in order.

    Raises:
        ConfigError: tables and episodes do not go together.
    """
    given = [None] * len(episodes) if reference is None else reference
    if not len(episodes) == len(tables) == len(given):
        raise ConfigError(
            f"calibration: {len(episodes)} episodes, but credit for {len(tables)} and a "
            f"reference for {len(given)}"
        )
    rows: list[Scored] = []
    for number, (episode, steps, truth) in enumerate(zip(episodes, tables, given, strict=True)):
        if episode.success is None:
            continue
        for k, (record, table) in enumerate(zip(episode.steps, steps, strict=True)):
            values = table.unit().values
            right = None if truth is None else truth[k].unit().values
            for r, row in enumerate(values):
                for a, (agent, score) in enumerate(zip(record.trace.agents, row, strict=True)):
                    if score is not None:
                        bit = None if right is None else _bit(right[r][a])
                        outcome = float(episode.success)
                        rows.append(Scored(number, k, r, agent, score, outcome, bit))
    return rows


def agreement(rows: Sequence[Scored]) -> float | None:
    """See :attr:`Part.agreement`."""
    known = [row for row in rows if row.right is not None]
    if not known:
        return None
    return sum(row.score != 0.5 and (row.score > 0.5) == row.right for row in known) / len(known)


def right_auc(rows: Sequence[Scored]) -> Interval | None:
    """AUC against the reference, with an interval over episodes."""
    known = [row for row in rows if row.right is not None]
    return _auc(known, [bool(row.right) for row in known])


def outcome_auc(rows: Sequence[Scored]) -> Interval | None:
    """AUC against the outcome, with an interval over episodes."""
    return _auc(rows, [row.outcome > 0.5 for row in rows])


def inside_auc(rows: Sequence[Scored]) -> Interval | None:
    """See :attr:`Part.inside`."""
    decisions: dict[tuple[int, int], list[Scored]] = {}
    for row in rows:
        if row.right is not None:
            decisions.setdefault((row.episode, row.step), []).append(row)
    found: list[tuple[int, float, int]] = []
    for (episode, _), said in decisions.items():
        right = [bool(row.right) for row in said]
        chance = auc([row.score for row in said], right)
        if chance is not None:
            found.append((episode, chance, sum(right) * (len(right) - sum(right))))
    sums: dict[int, tuple[float, int]] = {}
    for episode, chance, pairs in found:
        won, count = sums.get(episode, (0.0, 0))
        sums[episode] = (won + chance * pairs, count + pairs)
    by_episode = list(sums.values())

    def share(chosen: Sequence[int]) -> float | None:
        pairs = sum(by_episode[k][1] for k in chosen)
        return math.fsum(by_episode[k][0] for k in chosen) / pairs if pairs else None

    return by_bootstrap(share, len(by_episode))


def _part(rows: Sequence[Scored]) -> Part:
    return Part(
        scored=len(rows),
        mean=math.fsum(row.score for row in rows) / len(rows) if rows else None,
        agreement=agreement(rows),
        auc=right_auc(rows),
        outcome_auc=outcome_auc(rows),
        inside=inside_auc(rows),
    )


def _auc(rows: Sequence[Scored], right: Sequence[bool]) -> Interval | None:
    return auc_by_bootstrap([row.score for row in rows], right, [row.episode for row in rows])


def _episode_auc(rows: Sequence[Scored]) -> Interval | None:
    scores: dict[int, list[float]] = {}
    outcomes: dict[int, bool] = {}
    for row in rows:
        scores.setdefault(row.episode, []).append(row.score)
        outcomes[row.episode] = row.outcome > 0.5
    means = [math.fsum(values) / len(values) for values in scores.values()]
    return auc_by_bootstrap(means, list(outcomes.values()), range(len(means)))


def _bins(rows: Sequence[Scored], count: int) -> tuple[Bin, ...]:
    members: dict[int, list[Scored]] = {}
    for row in rows:
        members.setdefault(min(count - 1, int(row.score * count)), []).append(row)
    found = []
    for number, inside in sorted(members.items()):
        share = wilson([float(bool(row.right)) for row in inside])
        assert share is not None
        found.append(
            Bin(
                low=number / count,
                high=(number + 1) / count,
                score=math.fsum(row.score for row in inside) / len(inside),
                right=share,
            )
        )
    return tuple(found)


def _bit(value: float | None) -> bool | None:
    return None if value is None or value == 0.5 else value > 0.5


def _count(tables: Tables) -> int:
    return sum(
        _bit(v) is not None
        for steps in tables
        for table in steps
        for row in table.unit().values
        for v in row
    )


def _source(tables: Tables) -> str:
    return next((table.source for steps in tables for table in steps), "")


def _seen(items: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(items))
