"""Figures of the continuation study: rows, paired differences, and the forgetting of each stage.

Intervals are 95 %, from a bootstrap over *tasks* (pages, phone templates, recorded tasks). A task
is drawn with all its episodes under all training seeds, so the intervals hold for other tasks. They
do not contain the variance between training seeds. For this, the tables also have the value of each
seed, and for differences Student's t over the seeds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.origin import commit, machine
from benchmarks.records import read_record
from benchmarks.studies.continuation.cells import PHONE_SPLITS, TRACE_SPLITS, Cell, Played
from swarm_ui.errors import ConfigError
from swarm_ui.stats import over_seeds
from swarm_ui.storage.run_directory import write_atomic

RESAMPLES = 4000
NAMES = {
    "base": "base_x1", "phone": "web_before", "web": "web_after", "control": "web_control",
    "traces": "traces_after", "web_rehearsed": "web_rehearsed",
    "traces_rehearsed": "traces_rehearsed",
}  # fmt: skip
"""Row of each stage: one agent of the team, greedy."""
LABELS = {
    "base_x1": "base agent", "web_before": "phone", "web_after": "phone → web",
    "web_control": "phone → synthetic lessons, CPU time of the web stage",
    "traces_after": "phone → web → traces", "web_rehearsed": "phone → web, lessons rehearsed",
    "traces_rehearsed": "phone → web → traces, lessons rehearsed",
}  # fmt: skip
COMPARED = (
    ("web_before", "base_x1"), ("web_after", "web_before"), ("web_control", "web_before"),
    ("web_after", "web_control"), ("traces_after", "web_after"),
    ("web_rehearsed", "web_before"), ("web_rehearsed", "web_after"),
    ("traces_rehearsed", "traces_after"),
)  # fmt: skip
"""Pairs of rows: what a stage gained, or made an agent forget."""
SPLITS = ("web", "web_near", "web_far", "web_easy", *PHONE_SPLITS, *TRACE_SPLITS)
TITLES = {
    "web": "pages trained on, new seeds", "web_near": "near held-out pages",
    "web_far": "far held-out pages", "web_easy": "easy pages",
    "new_parameters": "phone: new parameters", "new_apps": "phone: new apps",
    "traces_tasks": "traces: other tasks", "traces_sites": "traces: other sites",
}  # fmt: skip
_BEFORE = {"web": "phone", "control": "phone", "web_rehearsed": "phone",
           "traces": "web", "traces_rehearsed": "web_rehearsed"}  # fmt: skip
ByTask = dict[str, list[float]]
"""One value an episode (its mean over training seeds), by task."""


class Rated(NamedTuple):
    """The results of a policy on a split, for all training seeds."""

    stage: str
    seeds: tuple[int, ...]
    begun: tuple[int, ...]
    """For each training seed, the seed of the phone team from which the training starts."""
    played: tuple[Played, ...]
    """One for each seed, all on the same episodes."""

    def values(self) -> list[tuple[float | None, ...]]:
        """Success of each seed, or for recorded tasks the share of right steps."""
        return [p.step_success or p.success for p in self.played]


def rows() -> list[dict[str, Any]]:
    """The rows of the recorded run, in the format of ``benchmarks/learning.py``.

    Raises:
        ConfigError: no run was recorded.
    """
    found: list[dict[str, Any]] = read_record("continuation", dict[str, Any])["rows"]
    return found


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
                name: {t: mean(v) for t, v in _by_task(found).items()}
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


def bootstrap(values: ByTask) -> tuple[float, float]:
    """95 % percentile interval of a mean over episodes. The bootstrap draws tasks, not episodes."""
    sums = [(sum(v), len(v)) for v in values.values()]
    rng, found = random.Random(0), []
    for _ in range(RESAMPLES):
        drawn = rng.choices(sums, k=len(sums))
        found.append(sum(s for s, _ in drawn) / sum(n for _, n in drawn))
    found.sort()
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES)]


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


def _by_task(rated: Rated, less: Rated | None = None) -> ByTask:
    """Values, or differences to another policy on the same episodes (and seeds, if it has any).

    An episode that a fault masked on either side is left out.
    """
    found: ByTask = {}
    ours = _paired(rated, less)
    for k, (task, _) in enumerate(rated.played[0].jobs):
        seen = [v for values in ours if (v := values[k]) is not None]
        if seen:
            found.setdefault(task, []).append(mean(seen))
    return found


def _paired(rated: Rated, less: Rated | None) -> list[list[float | None]]:
    """The differences, one list for each seed, with one value for each episode."""
    if less is None:
        return [list(values) for values in rated.values()]
    if less.played[0].jobs != rated.played[0].jobs:
        raise ConfigError(f"{rated.played[0].split}: not the same episodes on both sides")
    others = dict(zip(less.seeds, less.values(), strict=True))
    found: list[list[float | None]] = []
    for seed, begun, values in zip(rated.seeds, rated.begun, rated.values(), strict=True):
        against = others.get({"base": 0, "phone": begun}.get(less.stage, seed))
        if against is not None:
            pairs = zip(values, against, strict=True)
            found.append([None if a is None or b is None else a - b for a, b in pairs])
    return found


def _row(
    name: str, split: str, rated: Rated, costs: Mapping[tuple[str, int], float]
) -> dict[str, Any]:
    values = _by_task(rated)
    low, high = bootstrap(values)
    every = [v for several in values.values() for v in several]
    line = {
        "name": name, "split": split, "success": mean(every), "low": low, "high": high,
        "seeds": len(rated.seeds), "episodes": len(every), "tasks": len(values),
        "cpu_s": mean(
            _spent(rated.stage, seed, begun, costs)
            for seed, begun in zip(rated.seeds, rated.begun, strict=True)
        ),
        "training_seeds": list(rated.seeds), "by_seed": [_mean(v) for v in rated.values()],
    }  # fmt: skip
    if rated.played[0].element:
        line["measure"] = "share of right steps of a recorded task"
        line["element_accuracy"] = mean(m for p in rated.played if (m := _mean(p.element)))
    return line


def _difference(ours: str, theirs: str, split: str, rated: Rated, less: Rated) -> dict[str, Any]:
    paired = _paired(rated, less)
    if not paired:
        return {"name": f"{ours} - {theirs}", "split": split, "seeds": 0}
    values = _by_task(rated, less)
    low, high = bootstrap(values)
    each = [m for seed in paired if (m := _mean(seed)) is not None]
    runs = over_seeds(each) if len(each) > 1 else None
    return {
        "name": f"{ours} - {theirs}", "split": split, "mean": mean(each), "low": low, "high": high,
        "by_seed": each, "seeds": len(each), "tasks": len(values),
        "over_seeds": None if runs is None else [runs.low, runs.high],
    }  # fmt: skip


def _spent(stage: str, seed: int, begun: int, costs: Mapping[tuple[str, int], float]) -> float:
    """CPU-seconds of a stage's training and of those before it."""
    own = costs.get((stage, begun if stage == "phone" else seed), 0.0)
    before = _BEFORE.get(stage)
    return own + (_spent(before, seed, begun, costs) if before else 0.0)


def _mean(values: Sequence[float | None]) -> float | None:
    seen = [v for v in values if v is not None]
    return mean(seen) if seen else None


def markdown(data: Mapping[str, Any]) -> str:
    """The figures as tables."""
    parts = [_rates(data), _gaps(data), _pages(data), _costs(data)]
    return "\n\n".join(part for part in parts if part)


def _rates(data: Mapping[str, Any]) -> str:
    places = {(r["name"], r["split"]): r for r in data["rows"]}
    names = list(dict.fromkeys(r["name"] for r in data["rows"]))
    splits = [s for s in SPLITS if any(r["split"] == s for r in data["rows"])]
    lines = ["| after | seeds | " + " | ".join(TITLES[s] for s in splits) + " |",
             "| --- " * (len(splits) + 2) + "|"]  # fmt: skip
    for name in names:
        mine = [places.get((name, split)) for split in splits]
        seeds = max(r["seeds"] for r in mine if r is not None)
        shown = " | ".join("–" if r is None else _percent(r["success"], r) for r in mine)
        lines.append(f"| {LABELS[name]} | {seeds} | {shown} |")
    return "\n".join(lines)


def _gaps(data: Mapping[str, Any]) -> str:
    head = ["difference", "on", "points [95 % over tasks]", "each seed"]
    head.append("95 %, Student's t over seeds")
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- | --- | --- |"]
    for d in data["differences"]:
        if d["seeds"]:
            ours, theirs = d["name"].split(" - ")
            each = " ".join(f"{100 * v:+.1f}" for v in d["by_seed"])
            t = d["over_seeds"]
            runs = "–" if t is None else f"[{100 * t[0]:+.1f}, {100 * t[1]:+.1f}]"
            lines.append(
                f"| {LABELS[ours]} minus {LABELS[theirs]} | {TITLES[d['split']]} | "
                f"{_percent(d['mean'], d, '+')} | {each} | {runs} |"
            )
    return "\n".join(lines) if len(lines) > 2 else ""


def _pages(data: Mapping[str, Any]) -> str:
    """Success on each page."""
    parts = []
    for split in ("web", "web_near", "web_far"):
        found = data["tasks"].get(split, {})
        if found:
            lines = [f"| {TITLES[split]} | " + " | ".join(found) + " |",
                     "| --- " * (len(found) + 1) + "|"]  # fmt: skip
            for task in sorted({task for rates in found.values() for task in rates}):
                shown = " | ".join(
                    "–" if task not in rates else f"{100 * rates[task]:.0f}"
                    for rates in found.values()
                )
                lines.append(f"| {task} | {shown} |")
            parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _costs(data: Mapping[str, Any]) -> str:
    lines = ["| cell | CPU-seconds of training | of the browser |", "| --- | --- | --- |"]
    for cell in data["cells"]:
        if cell["training_cpu_s"] is not None:
            lines.append(
                f"| {cell['name']} | {cell['training_cpu_s']:.0f} | {cell['browser_cpu_s']:.0f} |"
            )
    return "\n".join(lines)


def _percent(value: float, row: Mapping[str, Any], sign: str = "") -> str:
    low, high = 100 * row["low"], 100 * row["high"]
    return f"{100 * value:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"


def recorded(data: dict[str, Any], path: Path) -> None:
    """Save the figures with their origin."""
    seeds = sorted({int(c["name"].rpartition("-")[2]) for c in data["cells"] if "-" in c["name"]})
    data = {"commit": commit(), "training_seeds": seeds, "machine": machine(), **data}
    write_atomic(path, json.dumps(data, indent=1) + "\n")
