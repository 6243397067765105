"""Teams without stage 2, whose agent was trained with messages of others: rows and differences.

Intervals are 95 %, from a hierarchical bootstrap over graphs (where a row has several), templates
and episodes. All differences are paired by episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.windows.arms import Played, Split, arrows, control_arms
from benchmarks.studies.windows.edges import METHODS, LearnedEdges, learned_name
from benchmarks.studies.windows.rows import Contrast, Row
from benchmarks.studies.windows.stage2 import AgentMade
from benchmarks.support.tables import markdown_table
from swarm_ui.graph.topology import Edge
from swarm_ui.rollout import Job
from swarm_ui.stats import Outcome, clustered_mean, paired_difference

TITLES: dict[Split, str] = {
    "forms": "forms of known templates",
    "new": "forms of new templates and new apps",
    "all": "all known templates",
}
_BASE = "no-edges"
EXPLORED = (
    ("learned-thompson", "no-edges-top"),
    ("learned-thompson", "best-random"),
    ("learned-thompson", "redrawn"),
    ("learned-thompson", "scroll-4"),
    ("full", "full-shuffled"),
    ("full", "no-edges-top"),
    ("full", "whole"),
)
"""Further differences on forms of known templates. None was named before the study was run."""


class LearnedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The graph of one run of edge learning."""

    method: str
    seed: int
    edges: tuple[Edge, ...]
    episodes: int
    """Played while learning."""

    @classmethod
    def of(cls, one: LearnedEdges) -> LearnedGraph:
        """The graph of these learned edges."""
        return cls(method=one.method, seed=one.seed, edges=one.edges, episodes=one.episodes)


class Fixed(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of the teams without stage 2."""

    agent: AgentMade
    rows: tuple[Row, ...] = ()
    gaps: tuple[Contrast, ...] = ()
    """Differences to the vote without edges."""
    contrasts: tuple[Contrast, ...] = ()
    graphs: tuple[LearnedGraph, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """The arms of one row: one arm, or one for each of several graphs."""

    label: str
    arms: tuple[Played, ...]

    def outcomes(self, jobs: Sequence[Job], runs: int | None = None) -> list[Outcome]:
        """The outcomes of each graph as those of a run.

        Args:
            jobs: the episodes; an arm may have played only the first of them.
            runs: the number of runs, if the outcomes of one arm stand for several.
        """
        arms = self.arms if runs is None else self.arms * (runs // len(self.arms))
        return [
            Outcome(*job, value, run)
            for run, arm in enumerate(arms)
            for job, value in zip(jobs, arm.outcomes, strict=False)
        ]


def make_fixed(
    agent: AgentMade,
    played: Mapping[str, Mapping[str, Played]],
    learned: Sequence[LearnedEdges],
    jobs: Mapping[Split, Sequence[Job]],
) -> Fixed:
    """The figures of all that was played.

    Args:
        agent: how the agent was trained.
        played: by kind of episodes (a :data:`~benchmarks.studies.windows.arms.Split`,
            ``"random"``: random graphs on the first forms), by name.
        learned: the learned graphs.
        jobs: the episodes of each split.
    """
    rows: list[Row] = []
    gaps: list[Contrast] = []
    for split in TITLES:
        random = tuple(played["random"].values()) if split == "forms" else ()
        groups = _groups(played[split], learned, random)
        rows += [row_of_group(group, split, jobs[split]) for group in groups.values()]
        if _BASE in groups:
            base = groups[_BASE]
            gaps += [
                contrast_of_groups(group, base, split, jobs[split])
                for name, group in groups.items()
                if name != _BASE
            ]
    groups = _groups(played["forms"], learned, tuple(played["random"].values()))
    contrasts = [
        contrast_of_groups(groups[ours], groups[theirs], "forms", jobs["forms"])
        for ours, theirs in EXPLORED
        if ours in groups and theirs in groups
    ]
    return Fixed(
        agent=agent, rows=tuple(rows), gaps=tuple(gaps), contrasts=tuple(contrasts),
        graphs=tuple(map(LearnedGraph.of, learned)),
    )  # fmt: skip


def best_crossed(random: Sequence[Played]) -> list[float | None]:
    """The best random graph, cross-fitted: each half of the episodes uses the graph that was best
    on the other half, so that the choice is unbiased."""
    count = len(random[0].outcomes)
    halves = (range(0, count, 2), range(1, count, 2))
    out: list[float | None] = [None] * count
    for here, there in (halves, halves[::-1]):
        chosen = max(random, key=lambda arm: _rate([arm.outcomes[k] for k in there]))
        for k in here:
            out[k] = chosen.outcomes[k]
    return out


def _rate(values: Sequence[float | None]) -> float:
    return rates.known_mean(values) or 0.0


def _groups(
    played: Mapping[str, Played], learned: Sequence[LearnedEdges], random: Sequence[Played]
) -> dict[str, Group]:
    """What the rows show, by name."""
    found = {
        arm.name: Group(played[arm.name].label, (played[arm.name],))
        for arm in control_arms()
        if arm.name in played
    }
    for method, title in METHODS.items():
        names = [learned_name(g.method, g.seed) for g in learned if g.method == method]
        arms = tuple(played[name] for name in names if name in played)
        if arms:
            found[f"learned-{method}"] = Group(f"learned edges, {title}", arms)
    if random:
        best = msgspec.structs.replace(random[0], outcomes=tuple(best_crossed(random)))
        found["random"] = Group(f"{len(random)} random graphs", tuple(random))
        found["best-random"] = Group("the best of them, cross-fitted", (best,))
    return found


def row_of_group(group: Group, split: Split, jobs: Sequence[Job]) -> Row:
    """The success of a group on the episodes of a split."""
    rate = clustered_mean(group.outcomes(jobs))
    assert rate is not None, f"{group.label}: every episode has a fault"
    t_low, t_high = rates.bounds([_rate(arm.outcomes) for arm in group.arms])
    each = len(group.arms[0].outcomes)
    return Row(
        name=group.label, templates=split, success=round(rate.mean, 4), low=round(rate.low, 4),
        high=round(rate.high, 4), t_low=t_low, t_high=t_high, seeds=len(group.arms), episodes=each,
        calls=round(fmean(arm.calls for arm in group.arms) / each, 1),
        tokens=round(fmean(arm.tokens for arm in group.arms), 1),
    )  # fmt: skip


def contrast_of_groups(
    ours: Group, theirs: Group, split: Split, jobs: Sequence[Job], *, named: bool = False
) -> Contrast:
    """The difference on the episodes that both played; one graph is compared with each of many."""
    runs = max(len(ours.arms), len(theirs.arms))
    count = min(len(group.arms[0].outcomes) for group in (ours, theirs))
    left, right = ours.outcomes(jobs[:count], runs), theirs.outcomes(jobs[:count], runs)
    gap = paired_difference(left, right)
    assert gap is not None, f"{ours.label}, {theirs.label}: every episode has a fault"
    each = [[_rate([o.value for o in side if o.run == run]) for run in range(runs)]
            for side in (left, right)]  # fmt: skip
    t_low, t_high = rates.bounds([a - b for a, b in zip(*each, strict=True)])
    return Contrast(
        name=f"{ours.label} - {theirs.label}", templates=split, difference=round(gap.mean, 4),
        low=round(gap.low, 4), high=round(gap.high, 4), t_low=t_low, t_high=t_high, seeds=runs,
        named=named,
    )  # fmt: skip


# -- tables ---------------------------------------------------------------------------------------


def fixed_tables(fixed: Fixed) -> str:
    """All figures as Markdown."""
    there = {row.templates for row in fixed.rows}
    parts = [rows_of(fixed, split) for split in TITLES if split in there]
    return "\n\n".join([*parts, differences(fixed), _graphs(fixed)])


def rows_of(fixed: Fixed, split: Split) -> str:
    """The success of all policies on a split."""
    gaps = {g.name.rpartition(" - ")[0]: g for g in fixed.gaps if g.templates == split}
    lines = []
    for row in (row for row in fixed.rows if row.templates == split):
        gap = gaps.get(row.name)
        lines.append((
            row.name, rates.percent(row.success, row.low, row.high),
            "–" if gap is None else rates.percent(gap.difference, gap.low, gap.high, signed=True),
            row.seeds, f"{row.calls:.0f}", f"{row.tokens:,.0f}",
        ))  # fmt: skip
    heads = (f"policy, {TITLES[split]}", "success %", "difference to no edges", "graphs", "calls",
             "tokens")  # fmt: skip
    return markdown_table(heads, lines, "lllr")


def differences(fixed: Fixed) -> str:
    """The further differences."""
    lines = [
        (
            one.name, rates.percent(one.difference, one.low, one.high, signed=True),
            rates.percent_range(one.t_low, one.t_high, signed=True),
        )
        for one in fixed.contrasts
    ]  # fmt: skip
    heads = (f"difference, {TITLES['forms']}", "points", "95 %, Student's t over seeds")
    return markdown_table(heads, lines)


def _graphs(fixed: Fixed) -> str:
    lines = [(g.method, g.seed, g.episodes, arrows(g.edges)) for g in fixed.graphs]
    return markdown_table(("edges learned by", "seed", "episodes", "edges"), lines, "lrrl")
