"""Comparison of assigners on the same recorded episodes."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from itertools import repeat
from statistics import fmean, pstdev, pvariance

import msgspec

from swarm_ui.credit import CreditAssigner, CreditTable, EpisodeAssigner, as_matrix
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.analysis.calibration import Part, part, scored
from swarm_ui.optim.credit.analysis.ranks import spearman
from swarm_ui.optim.credit.assigners.assigner import (
    EpisodeCredit,
    States,
    Tables,
    by_episode,
    calls_of,
)
from swarm_ui.optim.credit.assigners.batch import BatchAssigner
from swarm_ui.trace.records import Episode

_CONCURRENCY = 8
"""Episodes that an assigner judges at the same time."""


class RecordedCredit(EpisodeCredit):
    """The credit recorded in the episodes, as an assigner; a step without it is unscored."""

    name = "recorded"
    calls = 0

    async def _assess(self, episode: Episode, states: States) -> Tables:
        return tuple(
            CreditTable(values=r.credit or as_matrix(r.trace, {}), source=self.name)
            for r in episode.steps
        )


class Assessed(msgspec.Struct, frozen=True, kw_only=True):
    """The credit that one assigner gave, and its cost."""

    name: str
    tables: tuple[Tables, ...]
    seconds: float
    calls: int | None
    """Number of calls to agents and models; ``None``: the assigner does not count them."""


class Side(Part, frozen=True, kw_only=True):
    """One assigner in a comparison; scores are in [0, 1]."""

    name: str
    share: float
    """Share that this assigner scored of the messages that any assigner scored."""
    deviation: float | None
    """Standard deviation of all scores."""
    within: float | None
    """Standard deviation within a decision, root mean square."""
    error: float | None
    """Mean standard error of a score, for assigners that estimate from samples."""
    calls: int | None
    seconds: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All assigners on the same episodes."""

    episodes: int
    """Number of episodes that are not masked."""
    decisions: int
    messages: int
    """Messages that any assigner scored."""
    reference: str
    """Name of the assigner that is used as the reference; empty: none."""
    sides: tuple[Side, ...]
    ranks: tuple[tuple[float | None, ...], ...]
    """Rank correlation of each pair, over the messages that both scored; ``None`` if one of them
    does not vary there."""


AnyAssigner = CreditAssigner | EpisodeAssigner | BatchAssigner
"""An assigner for decisions, for episodes or for batches of episodes."""


async def assess_all(
    assigner: AnyAssigner,
    episodes: Sequence[Episode],
    states: Sequence[Sequence[object]] | None = None,
) -> Assessed:
    """The credit of an assigner for all episodes, several of them concurrently.

    A :class:`~swarm_ui.optim.credit.assigners.batch.BatchAssigner` gets them as one batch.
    """
    gate = asyncio.Semaphore(_CONCURRENCY)

    async def one(alone: EpisodeAssigner, episode: Episode, at: States) -> Tables:
        async with gate:
            return await alone.assess(episode, at)

    before = calls_of(assigner)
    began = time.perf_counter()
    if isinstance(assigner, BatchAssigner):
        tables: Sequence[Tables] = await assigner.assess_batch(episodes)
    else:
        alone = by_episode(assigner)
        pairs = zip(episodes, states or repeat(None))  # noqa: B905  # as many as episodes
        tables = await together([one(alone, *pair) for pair in pairs])
    seconds = time.perf_counter() - began
    calls = None if before is None else (calls_of(assigner) or 0) - before
    return Assessed(name=assigner.name, tables=tuple(tables), seconds=seconds, calls=calls)


def compare(
    episodes: Sequence[Episode], assessed: Sequence[Assessed], *, reference: str = ""
) -> Comparison:
    """Compare the assigners on the episodes that all of them judged.

    ``reference``: name of the assigner whose credit counts as right. Raises ``ConfigError`` if
    there are no assigners, two have the same name, or the reference is missing.
    """
    if not assessed:
        raise ConfigError("compare: there is nothing to compare; give the credit of an assigner")
    by_name = {one.name: one for one in assessed}
    if len(by_name) < len(assessed):
        raise ConfigError(
            f"compare: several assigners have the same name: {', '.join(by_name)}; "
            "give each of them another name"
        )
    if reference and reference not in by_name:
        raise ConfigError(f"compare: no assigner '{reference}'; there are {', '.join(by_name)}")
    truth = by_name[reference].tables if reference else None
    rows = {name: scored(episodes, one.tables, truth) for name, one in by_name.items()}
    scores = {
        name: {(row.episode, row.step, row.round, row.agent): row.score for row in found}
        for name, found in rows.items()
    }
    messages = len(set().union(*scores.values()))
    kept = [episode for episode in episodes if episode.success is not None]
    return Comparison(
        episodes=len(kept),
        decisions=sum(len(episode.steps) for episode in kept),
        messages=messages,
        reference=reference,
        sides=tuple(
            _side(one, part(rows[name]), scores[name], messages) for name, one in by_name.items()
        ),
        ranks=tuple(tuple(_rank(scores[a], scores[b]) for b in by_name) for a in by_name),
    )


Place = tuple[int, int, int, str]
"""The place of a message: numbers of the episode, the step, the round and the agent."""


def _rank(ours: Mapping[Place, float], theirs: Mapping[Place, float]) -> float | None:
    both = sorted(ours.keys() & theirs.keys())
    return spearman([ours[place] for place in both], [theirs[place] for place in both])


def _side(one: Assessed, figures: Part, scores: Mapping[Place, float], messages: int) -> Side:
    decisions: dict[tuple[int, int], list[float]] = {}
    for (episode, step, _, _), value in scores.items():
        decisions.setdefault((episode, step), []).append(value)
    inside = [pvariance(values) for values in decisions.values() if len(values) > 1]
    tables = [table.unit() for steps in one.tables for table in steps]
    errors = [error for t in tables for row in t.errors or () for error in row if error is not None]
    return Side(
        **msgspec.structs.asdict(figures),
        name=one.name,
        share=len(scores) / messages if messages else 0.0,
        deviation=pstdev(scores.values()) if scores else None,
        within=math.sqrt(fmean(inside)) if inside else None,
        error=fmean(errors) if errors else None,
        calls=one.calls,
        seconds=one.seconds,
    )
