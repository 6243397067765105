"""Comparison of critics on the same recorded episodes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev, pvariance

import msgspec

from swarm_ui.credit import Credit, Critic
from swarm_ui.errors import ConfigError
from swarm_ui.optim.credit.analysis.calibration import Part, part, scored
from swarm_ui.optim.credit.analysis.ranks import spearman
from swarm_ui.optim.credit.critic import calls_of, credit_of, name_of
from swarm_ui.trace.records import Episode


class Assessed(msgspec.Struct, frozen=True, kw_only=True):
    """The credit that one critic gave, and its cost."""

    name: str
    tables: tuple[Credit, ...]
    seconds: float
    calls: int | None
    """Number of calls to agents and models; ``None``: the critic does not count them."""


class Side(Part, frozen=True, kw_only=True):
    """One critic in a comparison; scores are in [0, 1]."""

    name: str
    share: float
    """Share that this critic scored of the messages that any critic scored."""
    deviation: float | None
    """Standard deviation of all scores."""
    within: float | None
    """Standard deviation within a decision, root mean square."""
    error: float | None
    """Mean standard error of a score, for critics that estimate from samples."""
    calls: int | None
    seconds: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All critics on the same episodes."""

    episodes: int
    """Number of episodes that are not masked."""
    decisions: int
    messages: int
    """Messages that any critic scored."""
    reference: str
    """Name of the critic that is used as the reference; empty: none."""
    sides: tuple[Side, ...]
    ranks: tuple[tuple[float | None, ...], ...]
    """Rank correlation of each pair, over the messages that both scored; ``None`` if one of them
    does not vary there."""


async def assess_all(critic: Critic, episodes: Sequence[Episode]) -> Assessed:
    """The credit of a critic for all episodes, with its cost."""
    before, began = calls_of(critic), time.perf_counter()
    tables = await credit_of(critic, episodes)
    seconds = time.perf_counter() - began
    calls = None if before is None else (calls_of(critic) or 0) - before
    return Assessed(name=name_of(critic), tables=tuple(tables), seconds=seconds, calls=calls)


def compare(
    episodes: Sequence[Episode], assessed: Sequence[Assessed], *, reference: str = ""
) -> Comparison:
    """Compare the critics on the episodes that all of them judged.

    ``reference``: name of the critic whose credit counts as right. Raises ``ConfigError`` if
    there are no critics, two have the same name, or the reference is missing.
    """
    if not assessed:
        raise ConfigError("compare: there is nothing to compare; give the credit of a critic")
    by_name = {one.name: one for one in assessed}
    if len(by_name) < len(assessed):
        raise ConfigError(
            f"compare: several critics have the same name: {', '.join(by_name)}; "
            "give each of them another name"
        )
    if reference and reference not in by_name:
        raise ConfigError(f"compare: no critic '{reference}'; there are {', '.join(by_name)}")
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
    tables = [matrix for credit in one.tables for matrix in credit.unit().errors or ()]
    errors = [error for matrix in tables for row in matrix for error in row if error is not None]
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
