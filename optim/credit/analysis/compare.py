"""Assigners side by side on the same recorded episodes: what they agree on, and what they cost."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.credit import CreditTable, EpisodeAssigner
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.analysis.calibration import (
    Scored,
    Tables,
    agreement,
    inside_auc,
    outcome_auc,
    right_auc,
    scored,
)
from swarm_ui.optim.credit.analysis.ranks import spearman
from swarm_ui.optim.credit.assigners.assigner import CountsCalls, unscored
from swarm_ui.stats import Interval
from swarm_ui.trace.records import Episode


class RecordedCredit:
    """The credit that stands in the episodes already, as an assigner."""

    calls = 0

    def __init__(self, name: str = "recorded") -> None:
        self.name = name

    async def assess(
        self, episode: Episode, states: Sequence[object] | None = None
    ) -> tuple[CreditTable, ...]:
        """``StepRecord.credit``; a step without it is unscored."""
        if episode.success is None:
            return unscored(episode, self.name)
        return tuple(
            empty if record.credit is None else CreditTable(values=record.credit, source=self.name)
            for record, empty in zip(episode.steps, unscored(episode, self.name), strict=True)
        )


class Assessed(msgspec.Struct, frozen=True, kw_only=True):
    """What one assigner gave, and what it took."""

    name: str
    tables: tuple[tuple[CreditTable, ...], ...]
    seconds: float
    calls: int | None
    """To agents and models; ``None``: it does not count them."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One assigner in a comparison; scores are in [0, 1]."""

    name: str
    scored: int
    """Messages."""
    share: float
    """Of the messages that anybody scored."""
    mean: float | None
    deviation: float | None
    """Of all scores."""
    within: float | None
    """Deviation within a decision, root mean square: what tells colleagues apart."""
    error: float | None
    """Mean standard error of a score, for those that estimate from samples."""
    agreement: float | None
    auc: Interval | None
    outcome_auc: Interval | None
    inside: Interval | None
    """See :class:`~swarm_ui.optim.credit.analysis.calibration.Part`."""
    calls: int | None
    seconds: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All assigners on the same episodes."""

    episodes: int
    """Without the masked ones."""
    decisions: int
    messages: int
    """That anybody scored."""
    reference: str
    """Name of the side that says what is right; empty: none does."""
    sides: tuple[Side, ...]
    ranks: tuple[tuple[float | None, ...], ...]
    """Rank correlation of each pair, over the messages that both scored; ``None`` if one of them
    does not vary there."""


async def assess_all(
    assigner: EpisodeAssigner,
    episodes: Sequence[Episode],
    states: Sequence[Sequence[object]] | None = None,
    *,
    concurrency: int = 8,
) -> Assessed:
    """Have an assigner judge all episodes, several at the same time."""
    gate = asyncio.Semaphore(concurrency)

    async def one(number: int) -> tuple[CreditTable, ...]:
        async with gate:
            at = None if states is None else states[number]
            return await assigner.assess(episodes[number], at)

    counted = assigner.calls if isinstance(assigner, CountsCalls) else None
    began = time.perf_counter()
    tables = await asyncio.gather(*[one(number) for number in range(len(episodes))])
    seconds = time.perf_counter() - began
    calls = assigner.calls - (counted or 0) if isinstance(assigner, CountsCalls) else None
    return Assessed(name=assigner.name, tables=tuple(tables), seconds=seconds, calls=calls)


def compare(
    episodes: Sequence[Episode], assessed: Sequence[Assessed], *, reference: str = ""
) -> Comparison:
    """Figures of all assigners.

    Args:
        episodes: that all of them judged.
        assessed: from :func:`assess_all`, names all different.
        reference: name of the one that says what is right.

    Raises:
        ConfigError: there are none, two bear the same name, or the reference is not among them.
    """
    if not assessed:
        raise ConfigError("compare: nobody to compare; give at least one assigner's credit")
    by_name = {one.name: one for one in assessed}
    if len(by_name) < len(assessed):
        raise ConfigError(f"compare: two assigners bear one name: {', '.join(by_name)}")
    if reference and reference not in by_name:
        raise ConfigError(f"compare: no assigner '{reference}'; there are {', '.join(by_name)}")
    truth = by_name[reference].tables if reference else None
    rows = {name: scored(episodes, one.tables, truth) for name, one in by_name.items()}
    cells = {name: _cells(episodes, one.tables) for name, one in by_name.items()}
    anybody = set().union(*cells.values())
    kept = [episode for episode in episodes if episode.success is not None]
    return Comparison(
        episodes=len(kept),
        decisions=sum(len(episode.steps) for episode in kept),
        messages=len(anybody),
        reference=reference,
        sides=tuple(
            _side(one, rows[name], cells[name], len(anybody)) for name, one in by_name.items()
        ),
        ranks=tuple(tuple(_rank(cells[a], cells[b]) for b in by_name) for a in by_name),
    )


Place = tuple[int, int, int, int]
"""Episode, step, round, agent."""


def _cells(episodes: Sequence[Episode], tables: Tables) -> dict[Place, float]:
    """Scores by place, masked episodes left out."""
    return {
        (e, s, r, a): value
        for e, (episode, steps) in enumerate(zip(episodes, tables, strict=True))
        if episode.success is not None
        for s, table in enumerate(steps)
        for r, row in enumerate(table.unit().values)
        for a, value in enumerate(row)
        if value is not None
    }


def _rank(ours: Mapping[Place, float], theirs: Mapping[Place, float]) -> float | None:
    both = sorted(ours.keys() & theirs.keys())
    return spearman([ours[place] for place in both], [theirs[place] for place in both])


def _side(
    one: Assessed, rows: Sequence[Scored], cells: Mapping[Place, float], anybody: int
) -> Side:
    values = list(cells.values())
    decisions: dict[tuple[int, int], list[float]] = {}
    for (episode, step, _, _), value in cells.items():
        decisions.setdefault((episode, step), []).append(value)
    inside = [_variance(scores) for scores in decisions.values() if len(scores) > 1]
    errors = [
        error
        for steps in one.tables
        for table in steps
        for row in table.unit().errors or ()
        for error in row
        if error is not None
    ]
    return Side(
        name=one.name,
        scored=len(cells),
        share=len(cells) / anybody if anybody else 0.0,
        mean=_mean(values),
        deviation=math.sqrt(_variance(values)) if values else None,
        within=None if not inside else math.sqrt(math.fsum(inside) / len(inside)),
        error=_mean(errors),
        agreement=agreement(rows),
        auc=right_auc(rows),
        outcome_auc=outcome_auc(rows),
        inside=inside_auc(rows),
        calls=one.calls,
        seconds=one.seconds,
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((v - mean) ** 2 for v in values) / len(values)
