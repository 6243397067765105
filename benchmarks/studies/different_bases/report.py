"""The figures of the study: headroom of each team, success of its vote, and the contrasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.different_bases.cells import Cell, Decision, clones
from benchmarks.studies.different_bases.plan import (
    AGENTS,
    DIFFERENT,
    LIMIT,
    MAIN,
    MEASURES,
    POOLS,
    SPLITS,
    Plan,
    Split,
)
from benchmarks.studies.struct_files import Sources, read_struct, sources_of
from benchmarks.support.tables import markdown_table
from swarm_ui.errors import ConfigError
from swarm_ui.stats import Interval, Outcome, clustered_mean, paired_difference

_NOTE = (
    "The phone is simulated, and a scripted solver grades every decision: scores on it are not "
    "AndroidWorld scores."
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One team of four calls a decision. Shares are in [0, 1]; intervals are 95 %, clustered by
    template."""

    name: str
    pool: str
    split: Split
    best: bool
    """Whether the team consists of clones of the agent that is best on validation parameters."""
    single: float
    """One of its agents is right; of different agents, the best one."""
    any: float
    """Any of its four agents is right."""
    headroom: float
    headroom_low: float
    headroom_high: float
    vote: float
    """Its vote is right. All four shares are of the same screens."""
    success: float
    """Of the vote, in its own episodes."""
    low: float
    high: float
    seeds: int
    """Sets of agents."""
    episodes: int
    decisions: int


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A difference on the same screens or episodes; 95 %, clustered by template."""

    measure: str
    pool: str
    split: Split
    named: bool
    difference: float
    low: float
    high: float


class Study(Sources, frozen=True, kw_only=True):
    """All figures, and where they come from."""

    plan: Plan
    agents: dict[str, list[str]]
    """SHA-256 of the weights of each pool's agents."""
    best: dict[str, int]
    """The agent of each pool that is best on validation parameters."""
    rows: list[Row]
    contrasts: list[Contrast]
    seconds: float
    """CPU time of all cells."""


def study_of(folder: Path) -> Study:
    """The figures of what is in a folder."""
    paths = sorted((folder / "cells").glob("*.json"))
    cells = [read_struct(path, Cell) for path in paths]
    found = {(cell.pool, cell.split): cell for cell in cells}
    pools = [pool for pool in POOLS if (pool, "validation") in found]
    if not pools:
        raise ConfigError(f"'{folder}' has no pool of this study with validation episodes")
    best = {pool: _best(found[pool, "validation"].decisions) for pool in pools}
    played = [found[pool, split] for pool in pools for split in SPLITS if (pool, split) in found]
    return Study(
        **sources_of("different_bases", paths, (cell.commit for cell in cells)),
        plan=read_struct(folder / "settings.json", Plan),
        agents={pool: found[pool, "validation"].digests for pool in pools},
        best=best,
        rows=[row for cell in played for row in _rows(cell, best[cell.pool])],
        contrasts=[c for cell in played for c in _contrasts(cell, best[cell.pool])],
        seconds=round(sum(cell.seconds for cell in cells), 1),
    )


def single(decision: Decision, agent: int) -> float:
    """Share of its four views with which an agent is right."""
    return fmean(decision.right[agent])


def any_clone(decision: Decision, agent: int) -> float:
    """Whether an agent is right with any of its four views."""
    return float(any(decision.right[agent]))


def any_different(decision: Decision) -> float:
    """Whether any of four different agents is right, each with another of the four views: the mean
    over the four ways to shift the views."""
    shifts = range(AGENTS)
    return fmean(
        float(any(decision.right[k][(k + shift) % AGENTS] for k in range(AGENTS)))
        for shift in shifts
    )


def _best(decisions: Sequence[Decision]) -> int:
    """The agent that is most often right; a tie goes to the first."""
    return max(range(AGENTS), key=lambda k: (fmean(single(d, k) for d in decisions), -k))


def _rows(cell: Cell, best: int) -> list[Row]:
    rows = []
    for k in [*range(AGENTS), AGENTS]:
        name = DIFFERENT if k == AGENTS else clones(k)
        alone, reached = _measures(k, best)
        gap = _over(cell.decisions, lambda d, a=alone, r=reached: r(d) - a(d))  # type: ignore[misc]
        success = clustered_mean(cell.success[name])
        assert success is not None, f"{name}: every episode has a fault"
        rows.append(
            Row(
                name=name, pool=cell.pool, split=cell.split, best=k == best,
                single=round(fmean(map(alone, cell.decisions)), 4),
                any=round(fmean(map(reached, cell.decisions)), 4),
                headroom=round(gap.mean, 4), headroom_low=round(gap.low, 4),
                headroom_high=round(gap.high, 4),
                vote=round(fmean(d.votes[k] for d in cell.decisions), 4),
                success=round(success.mean, 4), low=round(success.low, 4),
                high=round(success.high, 4), seeds=1, episodes=len(cell.success[name]),
                decisions=len(cell.decisions),
            )
        )  # fmt: skip
    return rows


def _measures(k: int, best: int) -> tuple[Callable[[Decision], float], Callable[[Decision], float]]:
    """One agent of a team is right, and any of it; ``k`` is :data:`AGENTS` for different agents."""
    if k == AGENTS:
        return lambda d: single(d, best), any_different
    return lambda d: single(d, k), lambda d: any_clone(d, k)


def _contrasts(cell: Cell, best: int) -> list[Contrast]:
    votes = paired_difference(cell.success[DIFFERENT], cell.success[clones(best)])
    assert votes is not None
    found = {
        "headroom": _over(cell.decisions, lambda d: any_different(d) - single(d, best)),
        "gain of any": _over(cell.decisions, lambda d: any_different(d) - any_clone(d, best)),
        "gain of the vote": votes,
    }
    return [
        Contrast(
            measure=measure, pool=cell.pool, split=cell.split, named=cell.split == MAIN,
            difference=round(found[measure].mean, 4), low=round(found[measure].low, 4),
            high=round(found[measure].high, 4),
        )
        for measure in MEASURES
    ]  # fmt: skip


def _over(decisions: Sequence[Decision], value: Callable[[Decision], float]) -> Interval:
    """Mean over decisions; the interval is clustered by template."""
    interval = clustered_mean([Outcome(d.task, d.seed, value(d)) for d in decisions])
    assert interval is not None, "no decisions"
    return interval


# -- tables ---------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """All tables."""
    tables = [teams_table(study.rows), contrasts_table(study.contrasts)]
    return "\n\n".join([*tables, verdict(study), _NOTE])


def teams_table(rows: Sequence[Row]) -> str:
    """Teams on test splits."""
    heads = ("team of four, one call each", "split", "one agent right %", "any right %",
             "headroom, points", "vote right %", "success of the vote %")  # fmt: skip
    lines = [
        (
            _label(row), SPLITS[row.split], f"{100 * row.single:.1f}", f"{100 * row.any:.1f}",
            rates.percent(row.headroom, row.headroom_low, row.headroom_high, signed=True),
            f"{100 * row.vote:.1f}", rates.percent(row.success, row.low, row.high),
        )
        for row in rows
        if row.split != "validation"
    ]  # fmt: skip
    return markdown_table(heads, lines, "llr")


def main_rows(study: Study) -> list[Row]:
    """The different agents, and clones of the best one."""
    return [row for row in study.rows if row.best or row.name == DIFFERENT]


def contrasts_table(contrasts: Sequence[Contrast]) -> str:
    """The named differences in bold; the others are exploratory."""
    lines = []
    for one in contrasts:
        if one.split != "validation":
            gap = rates.percent(one.difference, one.low, one.high, signed=True)
            shown = f"**{gap}**" if one.named else gap
            lines.append((MEASURES[one.measure], one.pool, SPLITS[one.split], shown))
    return markdown_table(("difference, points", "agents", "split", "[95 %]"), lines, "lllr")


def verdict(study: Study) -> str:
    """Whether each pool's headroom is at least the limit."""
    lines = []
    for one in study.contrasts:
        if one.measure == "headroom" and one.named:
            enough = "at least" if one.difference >= LIMIT else "under"
            gap = rates.percent(one.difference, one.low, one.high, signed=True)
            lines.append(
                f"Headroom of different agents ({one.pool}) on new parameters: {gap} points, "
                f"{enough} the {100 * LIMIT:.0f} points that were set as the limit."
            )
    return "\n".join(lines)


def _label(row: Row) -> str:
    which = f"{row.pool}: {row.name}"
    return f"{which}, the best one" if row.best else which
