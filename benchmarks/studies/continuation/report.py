"""Figures of the continuation study: rows, paired differences, and the forgetting of each stage.

Intervals are 95 %, from a hierarchical bootstrap over training seeds, tasks (pages, phone
templates, recorded tasks) and episodes. Differences are paired. Few seeds say little about the
variance between training runs, so the tables also have the value of each seed, and for differences
Student's t over the seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.continuation.cells import PHONE_SPLITS, TRACE_SPLITS, Cell, Played
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record
from benchmarks.support.tables import markdown_table
from swarm_ui.errors import ConfigError
from swarm_ui.stats import Interval, Outcome, clustered_mean, over_seeds, paired_difference

NAME = "continuation"
NAMES = {
    "base": "base_x1", "phone": "web_before", "web": "web_after", "control": "web_control",
    "traces": "traces_after", "web_rehearsed": "web_rehearsed",
    "traces_rehearsed": "traces_rehearsed",
}  # fmt: skip
"""Row of each stage: one agent of the team, greedy."""
LABELS = {
    "base_x1": "base agent", "web_before": "phone", "web_after": "phone → web",
    "web_control": "phone → synthetic",
    "traces_after": "phone → web → traces", "web_rehearsed": "phone → web, rehearsal",
    "traces_rehearsed": "phone → web → traces, rehearsal",
}  # fmt: skip
COMPARED = (
    ("web_before", "base_x1"), ("web_after", "web_before"), ("web_control", "web_before"),
    ("web_after", "web_control"), ("traces_after", "web_after"),
    ("web_rehearsed", "web_before"), ("web_rehearsed", "web_after"),
    ("traces_rehearsed", "traces_after"),
)  # fmt: skip
"""Pairs of rows: what a stage gained, or made an agent forget."""
STAGES = COMPARED[:2] + COMPARED[4:5]
"""Each stage against the one before it."""
SPLITS = ("web", "web_near", "web_far", "web_easy", *PHONE_SPLITS, *TRACE_SPLITS)
TITLES = {
    "web": "pages trained on, new seeds", "web_near": "near held-out pages",
    "web_far": "far held-out pages", "web_easy": "easy pages",
    "new_parameters": "phone: new parameters", "new_apps": "phone: new apps",
    "traces_tasks": "traces: other tasks", "traces_sites": "traces: other sites",
}  # fmt: skip
_BEFORE = {"web": "phone", "control": "phone", "web_rehearsed": "phone",
           "traces": "web", "traces_rehearsed": "web_rehearsed"}  # fmt: skip


class Rated(NamedTuple):
    """The results of a policy on a split, for all training seeds."""

    stage: str
    seeds: tuple[int, ...]
    begun: tuple[int, ...]
    """For each training seed, the seed of the phone team from which the training starts."""
    played: tuple[Played, ...]
    """One for each seed, all on the same episodes."""

    def outcomes(self) -> list[Outcome]:
        """Success of every episode, or for recorded tasks the share of right steps."""
        return [o for k, seed in enumerate(self.seeds) for o in self.of_seed(k, seed)]

    def of_seed(self, k: int, run: int) -> list[Outcome]:
        """The outcomes with training seed number ``k``, as those of the training run ``run``."""
        played = self.played[k]
        values = played.step_success or played.success
        return [Outcome(*job, value, run) for job, value in zip(played.jobs, values, strict=True)]


def rows() -> list[dict[str, Any]]:
    """The rows of the recorded run, in the format of ``benchmarks/learning.py``.

    Raises:
        ConfigError: no run was recorded.
    """
    found: list[dict[str, Any]] = read_record(NAME, dict[str, Any])["rows"]
    return found


def study_of(folder: Path) -> dict[str, Any]:
    """The record of the study in a folder: its figures and where they come from."""
    data = figures(folder)
    seeds = sorted({int(c["name"].rpartition("-")[2]) for c in data["cells"] if "-" in c["name"]})
    made = msgspec.to_builtins(origin("python -m benchmarks.studies.continuation"))
    return {"origin": made, "training_seeds": seeds, **data}


def figures(folder: Path) -> dict[str, Any]:
    """The figures in the folder of a study.

    Raises:
        ConfigError: nothing was measured there, or the episodes of two runs differ.
    """
    cells = [Cell.load(path.parent) for path in sorted(folder.glob("*/measured.json"))]
    if not cells:
        raise ConfigError(f"'{folder}' holds no study: no stage was measured there")
    rated = _rated(cells)
    costs = {(c.record.stage, c.seed): c.cpu for c in cells}
    lines = [_row(name, split, found, costs) for (name, split), found in rated.items()]
    return {
        "rows": lines,
        "differences": [
            _difference(ours, theirs, split, rated[ours, split], rated[theirs, split])
            for ours, theirs in COMPARED
            for split in SPLITS
            if (ours, split) in rated and (theirs, split) in rated
        ],
        "tasks": {
            split: {
                name: _tasks(found.outcomes())
                for (name, where), found in rated.items()
                if where == split
            }
            for split in SPLITS
            if split not in TRACE_SPLITS
        },
        "cells": [
            {
                "name": c.folder.name, "training_cpu_s": c.record.training_cpu_s,
                "browser_cpu_s": c.record.browser_cpu_s,
            }
            for c in cells
        ],
    }  # fmt: skip


def _rated(cells: Sequence[Cell]) -> dict[tuple[str, str], Rated]:
    """By row and split, in the order of the stages."""
    found: dict[tuple[str, str], list[tuple[Cell, Played]]] = {}
    order = list(NAMES)
    for cell in sorted(cells, key=lambda c: (order.index(c.record.stage), c.seed)):
        for played in cell.record.played:
            found.setdefault((NAMES[cell.record.stage], played.split), []).append((cell, played))
    for (name, split), several in found.items():
        if len({played.jobs for _, played in several}) != 1:
            raise ConfigError(f"{name}, {split}: its runs were not tested on the same episodes")
    return {
        place: Rated(
            several[0][0].record.stage,
            tuple(cell.seed for cell, _ in several),
            tuple(cell.begun for cell, _ in several),
            tuple(played for _, played in several),
        )
        for place, several in found.items()
    }


def _tasks(values: Sequence[Outcome]) -> dict[str, float]:
    """The mean of each task."""
    found: dict[str, list[float]] = {}
    for outcome in values:
        if outcome.value is not None:
            found.setdefault(outcome.template, []).append(outcome.value)
    return {task: mean(several) for task, several in found.items()}


def _row(
    name: str, split: str, rated: Rated, costs: Mapping[tuple[str, int], float]
) -> dict[str, Any]:
    values = rated.outcomes()
    interval = clustered_mean(values)
    line = {
        "name": name, "split": split, **_bounds(interval, "success"),
        "seeds": len(rated.seeds),
        "episodes": len({(o.template, o.seed) for o in values if o.value is not None}),
        "tasks": len(_tasks(values)),
        "cpu_s": mean(
            _spent(rated.stage, seed, begun, costs)
            for seed, begun in zip(rated.seeds, rated.begun, strict=True)
        ),
        "training_seeds": list(rated.seeds), "by_seed": _by_seed(values, rated.seeds),
    }  # fmt: skip
    if rated.played[0].element:
        line["measure"] = "share of right steps of a recorded task"
        line["element_accuracy"] = mean(
            m for p in rated.played if (m := rates.known_mean(p.element)) is not None
        )
    return line


def _difference(ours: str, theirs: str, split: str, rated: Rated, less: Rated) -> dict[str, Any]:
    """Paired by episode and seed; the base agent has one run, which is paired with every seed."""
    if less.played[0].jobs != rated.played[0].jobs:
        raise ConfigError(f"{split}: not the same episodes on both sides")
    mine: list[Outcome] = []
    other: list[Outcome] = []
    for k, (seed, begun) in enumerate(zip(rated.seeds, rated.begun, strict=True)):
        before = {"base": 0, "phone": begun}.get(less.stage, seed)
        if before in less.seeds:
            mine += rated.of_seed(k, seed)
            other += less.of_seed(less.seeds.index(before), seed)
    gaps = [
        msgspec.structs.replace(
            a, value=None if a.value is None or b.value is None else a.value - b.value
        )
        for a, b in zip(mine, other, strict=True)
    ]
    by_seed = _by_seed(gaps, list(dict.fromkeys(o.run for o in gaps)))
    each = [m for m in by_seed if m is not None]
    if not each:
        return {"name": f"{ours} - {theirs}", "split": split, "seeds": 0}
    runs = over_seeds(each) if len(each) > 1 else None
    return {
        "name": f"{ours} - {theirs}", "split": split,
        **_bounds(paired_difference(mine, other), "mean"),
        "by_seed": each, "seeds": len(each), "tasks": len(_tasks(gaps)),
        "over_seeds": None if runs is None else [runs.low, runs.high],
    }  # fmt: skip


def _bounds(interval: Interval | None, name: str) -> dict[str, float | None]:
    if interval is None:
        return {name: None, "low": None, "high": None}
    return {name: interval.mean, "low": interval.low, "high": interval.high}


def _by_seed(values: Sequence[Outcome], seeds: Sequence[int]) -> list[float | None]:
    return [rates.known_mean(o.value for o in values if o.run == seed) for seed in seeds]


def _spent(stage: str, seed: int, begun: int, costs: Mapping[tuple[str, int], float]) -> float:
    """CPU-seconds of a stage's training and of those before it."""
    own = costs.get((stage, begun if stage == "phone" else seed), 0.0)
    before = _BEFORE.get(stage)
    return own + (_spent(before, seed, begun, costs) if before else 0.0)


def markdown(data: Mapping[str, Any]) -> str:
    """The figures as tables: success, differences, each page, CPU time."""
    return _joined(summary(data), gaps_table(data), _pages(data), _costs(data))


def summary(data: Mapping[str, Any]) -> str:
    """The tables of docs/continuation.md: success, and what each stage changes."""
    return _joined(_rates(data), gaps_table(data, stages_only=True))


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _rates(data: Mapping[str, Any]) -> str:
    places = {(r["name"], r["split"]): r for r in data["rows"]}
    names = list(dict.fromkeys(r["name"] for r in data["rows"]))
    splits = [s for s in SPLITS if any(r["split"] == s for r in data["rows"])]
    lines = []
    for name in names:
        mine = [places.get((name, split)) for split in splits]
        seeds = max(r["seeds"] for r in mine if r is not None)
        shown = ["–" if r is None else _percent(r["success"], r) for r in mine]
        lines.append([LABELS[name], seeds, *shown])
    return markdown_table(["after", "seeds", *(TITLES[s] for s in splits)], lines)


def gaps_table(data: Mapping[str, Any], *, stages_only: bool = False) -> str:
    """Differences; ``stages_only``: each stage against the one before it."""
    heads = ("difference", "on", "points [95 %, clustered]", "each seed",
             "95 %, Student's t over seeds")  # fmt: skip
    lines = []
    kept = {f"{ours} - {theirs}" for ours, theirs in (STAGES if stages_only else COMPARED)}
    for d in data["differences"]:
        # differences of 0 with every seed are left out
        if d["name"] in kept and any(d.get("by_seed", ())):
            ours, theirs = d["name"].split(" - ")
            each = " ".join(f"{100 * v:+.1f}" for v in d["by_seed"])
            runs = rates.percent_range(*(d["over_seeds"] or (None, None)), signed=True)
            lines.append((
                f"{LABELS[ours]} minus {LABELS[theirs]}", TITLES[d["split"]],
                _percent(d["mean"], d, signed=True), each, runs,
            ))  # fmt: skip
    return markdown_table(heads, lines) if lines else ""


def _pages(data: Mapping[str, Any]) -> str:
    """Success on each page."""
    parts = []
    for split in ("web", "web_near", "web_far"):
        found = data["tasks"].get(split, {})
        if found:
            lines = [
                [task, *(f"{100 * each[task]:.0f}" if task in each else "–"
                         for each in found.values())]
                for task in sorted({task for each in found.values() for task in each})
            ]  # fmt: skip
            parts.append(markdown_table([TITLES[split], *found], lines))
    return "\n\n".join(parts)


def _costs(data: Mapping[str, Any]) -> str:
    lines = [
        (cell["name"], f"{cell['training_cpu_s']:.0f}", f"{cell['browser_cpu_s']:.0f}")
        for cell in data["cells"]
        if cell["training_cpu_s"] is not None
    ]
    return markdown_table(("cell", "CPU-seconds of training", "of the browser"), lines)


def _percent(value: float | None, row: Mapping[str, Any], *, signed: bool = False) -> str:
    if value is None:
        return "–"  # faults masked all episodes
    return rates.percent(value, row["low"], row["high"], signed=signed)
