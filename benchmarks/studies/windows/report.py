"""Tables of the window study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev

from benchmarks.studies.windows.arms import NAMES, Played, control_arms
from benchmarks.studies.windows.edges import METHODS, LearnedEdges
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.graph.topology import Edge
from swarm_ui.rollout.episodes import Job
from swarm_ui.stats import Outcomes, over_seeds, paired_difference, table, wilson

_BASE = "no-edges"
_FAMILIES = ("form", "toggle", "delete", "answer", "other")


def arrows(edges: Sequence[Edge]) -> str:
    """Edges in short form: ``0→1 0→2``."""
    place = {name: k for k, name in enumerate(NAMES)}
    return " ".join(f"{place[a]}→{place[b]}" for a, b in sorted(edges)) or "none"


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


def summary(
    played: Mapping[str, Mapping[str, Played]],
    learned: Sequence[LearnedEdges],
    jobs: Sequence[Job],
) -> str:
    """All tables as Markdown, without results that are missing.

    Args:
        played: by kind of episodes (``"forms"``, ``"random"``, ``"tuning"``, ``"all"``), by name.
        jobs: the episodes of ``"all"``.
    """
    forms, every = played["forms"], played["all"]
    parts = ["### Forms", _controls(forms)] if forms else []
    random = list(played["random"].values())
    done = [one for one in learned if _name(one) in forms]
    if random:
        parts.append(_spread(random, played["tuning"]))
    if random and done:
        parts.append(_learned(done, forms, best_crossed(random)))
    if every:
        parts += ["### All templates", _controls(every), _families(every, jobs)]
    return "\n\n".join(parts) + "\n"


def learned_name(method: str, seed: int) -> str:
    return f"learned-{method}-{seed}"


def _name(one: LearnedEdges) -> str:
    return learned_name(one.method, one.seed)


def _rate(values: Outcomes) -> float:
    rate = wilson(values)
    return 0.0 if rate is None else rate.mean


def _controls(arms: Mapping[str, Played]) -> str:
    shown = [arms[arm.name] for arm in control_arms() if arm.name in arms]
    rows = table(
        {arm.label: arm.outcomes for arm in shown},
        against=arms[_BASE].label if _BASE in arms else None,
    )
    lines = [
        "| policy | success % [95 %] | difference to no edges | calls a decision | all passed |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row, arm in zip(rows, shown, strict=True):
        rate = "–" if row.success is None else row.success.percent()
        gap = "–" if row.difference is None else row.difference.percent(signed=True)
        lost = f"{100 * arm.lost / max(1, arm.decisions):.1f} %"
        each = arm.calls / max(1, arm.decisions)
        lines.append(f"| {row.label} | {rate} | {gap} | {each:.0f} | {lost} |")
    return "\n".join(lines)


def _spread(random: Sequence[Played], tuning: Mapping[str, Played]) -> str:
    rates = {arm.name: _rate(arm.outcomes) for arm in random}
    low, high = min(rates.values()), max(rates.values())
    top = max(random, key=lambda arm: rates[arm.name])
    lines = [
        f"{len(random)} fixed random graphs: mean {100 * fmean(rates.values()):.1f} %, standard "
        f"deviation {100 * pstdev(rates.values()):.1f}, {100 * low:.1f} to {100 * high:.1f} %, "
        f"over {len(top.outcomes)} episodes each.",
        "",
        "| graph | success % [95 %] | edges |",
        "| --- | --- | --- |",
    ]
    chosen: list[tuple[str, Outcomes, Sequence[Edge] | None]] = [
        ("best of them, cross-fitted", best_crossed(random), None)
    ]
    if all(arm.name in tuning for arm in random):
        pick = max(random, key=lambda arm: _rate(tuning[arm.name].outcomes))
        each = len(tuning[pick.name].outcomes)
        chosen.append((f"best of them on {each} tuning episodes each", pick.outcomes, pick.edges))
    chosen.append(("best of them on the test itself (flattered)", top.outcomes, top.edges))
    for label, values, edges in chosen:
        rate = wilson(values)
        said = "two" if edges is None else arrows(edges)
        lines.append(f"| {label} | {'–' if rate is None else rate.percent()} | {said} |")
    return "\n".join(lines)


def _learned(done: Sequence[LearnedEdges], arms: Mapping[str, Played], best: Outcomes) -> str:
    lines = [
        "| learned graph | success % [95 %] | to the best random one, cross-fitted | "
        "to no edges | edges |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in done:
        values = arms[_name(one)].outcomes
        rate, gap = wilson(values), paired_difference(values[: len(best)], best)
        base = paired_difference(values, arms[_BASE].outcomes) if _BASE in arms else None
        told = [
            "–" if rate is None else rate.percent(),
            "–" if gap is None else gap.percent(signed=True),
            "–" if base is None else base.percent(signed=True),
        ]
        label = f"{METHODS[one.method]}, seed {one.seed}, {one.episodes} episodes"
        lines.append(f"| {label} | {' | '.join(told)} | {arrows(one.edges)} |")
    for method, label in METHODS.items():
        own = [arms[_name(one)].outcomes for one in done if one.method == method]
        if len(own) > 1:
            lines += _means(label, own, best)
    return "\n".join(lines)


def _means(label: str, own: Sequence[Outcomes], best: Outcomes) -> list[str]:
    """Mean over seeds, with one interval for the variance between seeds and one for that between
    episodes."""
    found = [paired_difference(values[: len(best)], best) for values in own]
    rates = over_seeds([_rate(values) for values in own])
    gaps = over_seeds([gap.mean for gap in found if gap is not None])
    each = [
        None if None in values else fmean(float(v) for v in values if v is not None)
        for values in zip(*own, strict=True)
    ]
    paired = paired_difference(each[: len(best)], best)
    if rates is None or gaps is None or paired is None:
        return []
    what = f"{label}, mean of {len(own)} seeds"
    return [
        f"| {what}, interval over seeds | {rates.percent()} | {gaps.percent(signed=True)} | | |",
        f"| {what}, interval over episodes | {100 * rates.mean:.1f} | "
        f"{paired.percent(signed=True)} | | |",
    ]


def _families(arms: Mapping[str, Played], jobs: Sequence[Job]) -> str:
    """Success by kind of task."""
    kinds = [_family(task) for task, _ in jobs]
    lines = [
        "| policy | " + " | ".join(f"{f} ({kinds.count(f)})" for f in _FAMILIES) + " |",
        "| --- |" + " --- |" * len(_FAMILIES),
    ]
    for name in ("no-edges", "no-edges-top", "full", "scroll-4", "whole"):
        if name in arms:
            values = arms[name].outcomes
            rates = [
                _rate([v for v, kind in zip(values, kinds, strict=True) if kind == family])
                for family in _FAMILIES
            ]
            cells = " | ".join(f"{100 * rate:.0f}" for rate in rates)
            lines.append(f"| {arms[name].label} | {cells} |")
    return "\n".join(lines)


def _family(task: str) -> str:
    tags = TEMPLATES[task].tags
    return next((family for family in _FAMILIES if family in tags), "other")
