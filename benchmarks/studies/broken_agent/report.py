"""The results of all arms as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.studies.broken_agent.arms import ARMS, KINDS, SIGHTS, BrokenCell, Kind, Sight
from benchmarks.studies.intervals import numbers
from benchmarks.studies.struct_files import read_struct
from swarm_ui.stats import Interval, over_seeds, paired_difference, wilson
from swarm_ui.storage.run_directory import write_atomic

_LABEL = "The phone is simulated, the critic scripted: scores on it are not AndroidWorld scores."


def summary(folder: Path) -> str:
    """All tables as Markdown. Writes them and ``summary.json`` into the folder."""
    cells = [read_struct(path, BrokenCell) for path in sorted(folder.glob("*-*-*.json"))]
    parts, figures = [], {}
    for sight in SIGHTS:
        for kind in KINDS:
            chosen = [c for c in cells if (c.sight, c.kind) == (sight, kind)]
            if chosen:
                parts.append(_section(sight, kind, chosen))
                figures[f"{sight}-{kind}"] = _figures(chosen)
    text = "\n\n".join([*parts, _LABEL])
    write_atomic(folder / "summary.md", text + "\n")
    write_atomic(folder / "summary.json", json.dumps(figures, indent=1) + "\n")
    return text


def _section(sight: Sight, kind: Kind, cells: Sequence[BrokenCell]) -> str:
    right = sum(cell.found == (cell.broken,) for cell in cells)
    wrong = sum(bool(cell.healthy_found) for cell in cells)
    gaps = [a.gap.mean for c in cells for a in c.audits if a.agent == c.broken and a.gap]
    others = [
        abs(a.gap.mean)
        for c in cells
        for a in (*c.audits, *c.healthy_audits)
        if a.gap and not (a.agent == c.broken and a in c.audits)
    ]
    share = recovered(cells)
    lines = [
        f"### {SIGHTS[sight][:1].upper()}{SIGHTS[sight][1:]}; {KINDS[kind]}",
        "",
        f"{len(cells)} seeds, each with another agent broken. Found from credit alone in {right} "
        f"of {len(cells)}; found in a healthy team: {wrong} of {len(cells)}. The broken agent's "
        f"credit lies {-fmean(gaps):.2f} below the median of its colleagues, that of no healthy "
        f"one further than {max(others):.2f} from it.",
        "",
        "| team | success % | minus broken, fully connected | each seed |",
        "| --- | --- | --- | --- |",
    ]
    for arm in ARMS:
        ours = _pooled(cells, arm.name)
        rate = wilson(ours)
        gap = None if arm.name == "full" else paired_difference(ours, _pooled(cells, "full"))
        each = ", ".join(f"{100 * _mean(c.outcomes[arm.name]):.1f}" for c in cells)
        lines.append(
            f"| {arm.label} | {'–' if rate is None else rate.percent()} | "
            f"{'–' if gap is None else gap.percent(signed=True)} | {each} |"
        )
    if share is not None:
        lines += [
            "",
            f"Cutting both gives back {100 * share:.0f} % of what the broken agent costs; minus "
            f"half of it: {_percent(beyond_half(cells))} points over episodes, "
            f"{_percent(over_seeds([_half(c) for c in cells]))} over seeds. "
            + "Against the broken team "
            + ", ".join(_against(cells, name) for name in ("none", "random", "full"))
            + ".",
        ]
    return "\n".join(lines)


def _against(cells: Sequence[BrokenCell], other: str) -> str:
    gap = paired_difference(_pooled(cells, "cut"), _pooled(cells, other))
    label = next(arm.label for arm in ARMS if arm.name == other).removeprefix("broken: ")
    return f"with {label} {_percent(gap)}"


def recovered(cells: Sequence[BrokenCell]) -> float | None:
    """Share of the loss caused by the broken agent that is recovered by removing it."""
    full, cut, healthy = (_mean(_pooled(cells, name)) for name in ("full", "cut", "healthy"))
    return (cut - full) / (healthy - full) if healthy > full else None


def beyond_half(cells: Sequence[BrokenCell]) -> Interval | None:
    """Success after the removal minus the mean of broken and healthy, paired."""
    triples = zip(*(_pooled(cells, name) for name in ("cut", "full", "healthy")), strict=True)
    sides = [
        (None, None) if None in triple else (triple[0], (triple[1] + triple[2]) / 2)  # type: ignore[operator]
        for triple in triples
    ]
    return paired_difference([a for a, _ in sides], [b for _, b in sides])


def _half(cell: BrokenCell) -> float:
    full, cut, healthy = (_mean(cell.outcomes[name]) for name in ("full", "cut", "healthy"))
    return cut - (full + healthy) / 2


def _figures(cells: Sequence[BrokenCell]) -> dict[str, object]:
    return {
        "seeds": len(cells),
        "found": sum(cell.found == (cell.broken,) for cell in cells),
        "found_in_healthy": sum(bool(cell.healthy_found) for cell in cells),
        "success": {arm.name: numbers(wilson(_pooled(cells, arm.name))) for arm in ARMS},
        "recovered": recovered(cells),
        "beyond_half": numbers(beyond_half(cells)),
        "cpu_seconds": round(sum(cell.seconds for cell in cells)),
    }


def _pooled(cells: Sequence[BrokenCell], arm: str) -> list[float | None]:
    return [outcome for cell in cells for outcome in cell.outcomes[arm]]


def _mean(outcomes: Sequence[float | None]) -> float:
    return fmean([value for value in outcomes if value is not None])


def _percent(interval: Interval | None) -> str:
    return "–" if interval is None else interval.percent(signed=True)
