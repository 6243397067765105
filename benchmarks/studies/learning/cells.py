"""The finished cells of the learning benchmark, read as rows of outcomes and work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.learning.variants import VARIANTS
from benchmarks.studies.struct_files import read_struct
from benchmarks.support.origin import Origin
from swarm_ui.optim.config import UpdateConfig
from swarm_ui.report.results import ArmResult, Results
from swarm_ui.rollout import Job
from swarm_ui.stats import Outcome
from swarm_ui.storage.run_directory import RunDirectory

CELL_FILE = "cell.json"
SPLITS = {"parameters": "new_parameters", "templates": "new_templates", "apps": "new_apps"}
"""Names of the splits: in the study, and in the JSON object."""
_SINGLES = {
    "untrained": ("untrained", "base-greedy"),
    "base_x1": ("base", "base-greedy"),
    "base_guard": ("base", "base-guard"),
    "base_shuffled": ("base", "base-shuffled"),
    "base_clones": ("base", "base-clones"),
    "base_x4": ("base", "base-vote"),
    "base_team": ("base", "base-team"),
}
"""Rows without training: their cell and arm."""
_ARMS = {"": "trained-team", "_vote": "trained-vote", "_greedy": "trained-greedy"}
_OWN = "trained-team-own"


class CellOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """``cell.json``: what began a cell, in addition to its ``config.json``."""

    origin: Origin
    trainer: dict[str, Any] = {}
    """Settings of the trainer that the variant sets itself."""


class Work(NamedTuple):
    """The work of training; ``None``: not counted. Means over runs, except the memory."""

    cpu_s: float = 0.0
    """CPU-seconds of the training process."""
    steps: float | None = None
    """Optimiser steps, over all adapters."""
    samples: float | None = None
    """Number of examples in all steps, with rehearsed ones. An example that is used twice counts
    twice."""
    calls: float | None = None
    """Model calls in rollouts."""
    tokens: float | None = None
    """Tokens of these calls, prompts and replies. For more stage 1: tokens of its lessons."""
    iteration_s: float | None = None
    """Wall time of an iteration."""
    peak_mb: float | None = None
    """Largest peak memory of a training process, 2**20 bytes."""


class Row(NamedTuple):
    """The results of one policy on one split."""

    name: str
    split: str
    jobs: tuple[Job, ...]
    runs: dict[int, tuple[float | None, ...]]
    """Outcomes of each training run, by its seed, in the order of ``jobs``. For a team on several
    DAGs each outcome is the mean over the DAGs. Without training there is one run, 0."""
    graphs: int
    """Number of DAGs that each run was tested on."""
    work: Work
    trained: bool
    checker: int
    """Version of the success check."""

    def outcomes(self, runs: Sequence[int]) -> list[Outcome]:
        """The outcomes of these runs. An untrained policy has the same ones for each."""
        return [
            Outcome(task, seed, value, run)
            for run in runs
            for (task, seed), value in zip(
                self.jobs, self.runs[run if self.trained else 0], strict=True
            )
        ]


def rows(folder: Path) -> list[Row]:
    """The rows that were measured in a folder; each has the runs that are finished."""
    found: list[Row] = []
    for split in SPLITS:
        for name, (cell, arm) in _SINGLES.items():
            found += _row(name, split, {0: folder / cell}, arm, trained=False)
        for variant in VARIANTS:
            cells = _by_seed(folder, variant.name)
            for suffix, arm in _ARMS.items():
                if suffix == "" or variant.team or (variant.vote and suffix == "_greedy"):
                    shown = variant.arm if suffix == "" else arm
                    found += _row(variant.name + suffix, split, cells, shown)
            found += _row(f"{variant.name}_own", split, cells, _OWN)
        for name, cell in (("more_stage1", "stage1"), ("more_stage1_rft", "stage1_rft")):
            found += _row(name, split, _by_seed(folder, cell), "stage1-vote")
    return found


def cell_origins(folder: Path) -> list[dict[str, Any]]:
    """Name, date, commit and settings of every cell with results."""
    found = []
    for path in sorted(folder.glob("*/results.json")):
        run, kept = RunDirectory.open_existing(path.parent), path.parent / CELL_FILE
        line: dict[str, Any] = {"cell": path.parent.name, "created": run.document()["created"]}
        if kept.exists():
            begun = read_struct(kept, CellOrigin)
            line |= msgspec.to_builtins(begun.origin) | {"trainer": begun.trainer}
        found.append(line)
    return found


def _by_seed(folder: Path, name: str) -> dict[int, Path]:
    """The cells of a variant, by seed."""
    found = (p for p in folder.glob(f"{name}-[0-9]*") if p.name.removeprefix(f"{name}-").isdigit())
    return dict(sorted((int(path.name.rpartition("-")[2]), path) for path in found))


def _row(
    name: str, split: str, cells: dict[int, Path], arm: str, *, trained: bool = True
) -> list[Row]:
    """The row of the runs that are finished; none if there are none."""
    tests: dict[int, list[ArmResult]] = {}
    for seed, cell in cells.items():
        results = Results.load(cell)
        numbered = [arm, *(f"{arm}-{k}" for k in range(2, 10))]
        played = [found for each in numbered if (found := results.find(split, each)) is not None]
        if played:
            tests[seed] = played
    if not tests:
        return []
    every = [test for played in tests.values() for test in played]
    if len({test.jobs for test in every}) != 1:
        raise SystemExit(f"{name}, {split}: its runs were not tested on the same episodes")
    if len({test.checker for test in every}) != 1:
        raise SystemExit(f"{name}, {split}: its runs have different versions of the success check")
    runs = {
        seed: tuple(map(rates.known_mean, zip(*(t.outcomes for t in played), strict=True)))
        for seed, played in tests.items()
    }
    graphs = max(map(len, tests.values()))
    work = work_of([cells[seed] for seed in tests])
    return [Row(name, split, every[0].jobs, runs, graphs, work, trained, every[0].checker)]


def work_of(cells: Sequence[Path]) -> Work:
    """The work of some runs of one variant."""
    lines: list[list[dict[str, Any]]] = [
        list(RunDirectory.open_existing(cell).metrics()) for cell in cells
    ]
    flat = [line for run in lines for line in run]
    took = [r["rollout_seconds"] + r["update_seconds"] for r in flat if "rollout_seconds" in r]
    held = [r["peak_memory_mb"] for r in flat if r.get("peak_memory_mb") is not None]
    batch = UpdateConfig().batch_size
    return Work(
        cpu_s=fmean(Results.load(cell).training_cpu_seconds for cell in cells),
        steps=_over_runs(lines, _steps),
        samples=_over_runs(lines, lambda line: batch * _steps(line) if _updates(line) else 0),
        calls=_over_runs(lines, lambda line: line.get("calls", 0)),
        tokens=_over_runs(lines, _tokens),
        iteration_s=fmean(took) if took else None,
        peak_mb=max(held) if held else None,
    )


def _over_runs(lines: Sequence[Sequence[dict[str, Any]]], figure: Any) -> float | None:
    """Mean over runs of the sum of a figure; ``None`` if it is 0. Repeated lines count once."""
    sums = []
    for run in lines:
        latest = {(line.get("kind"), line.get("iteration")): line for line in run}
        sums.append(sum(figure(line) for line in latest.values()))
    return fmean(sums) or None


def _updates(line: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = line.get("updates") or []
    return found


def _steps(line: dict[str, Any]) -> int:
    if line.get("kind") == "control":
        return int(line["steps"])
    return sum(int(update["steps"]) for update in _updates(line))


def _tokens(line: dict[str, Any]) -> int:
    if line.get("kind") == "control":
        return int(line.get("tokens") or 0)
    return int(line.get("prompt_tokens", 0)) + int(line.get("completion_tokens", 0))
