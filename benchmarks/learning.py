"""What learning gains a team: the whole method beside ablations and controls, on held-out tasks.

    python benchmarks/learning.py --out runs/learning [--seeds 1 2 3] [--only full rft]
    python benchmarks/learning.py --recorded
    python benchmarks/learning.py --quick

**The phone is simulated and its critic scripted; scores are not AndroidWorld scores.** Each run
trains a team of four from the shipped base agent as the demo does (4 iterations of 112 episodes)
and plays the same test episodes: known templates with new parameters, new templates, new apps. A
run that is done is not done again, so the same command goes on after an interruption.

Rows: *untrained*, the architecture with random weights; *base_x1*, the base agent, greedy;
*base_x4*, four of it with shuffled views and the probability vote; *full*, the team on an unseen
DAG, *full_vote* without edges, *full_greedy* one of its agents; the same for every other variant
(demos/study/variants.py), of which *independent_voters* has no DAG; *more_stage1*, the base agent
trained on by stage 1 for the CPU time of *full*, four of it as in *base_x4*.

``success`` is the mean over seeds and episodes. ``low`` and ``high``: 95 % bootstrap over episodes,
each with its outcomes under all seeds; so they say nothing about further seeds, for which the table
has each seed's own value. Differences resample the same episodes on both sides.

Prints tables; the last line is JSON: ``rows`` of ``{name, split, success, low, high, seeds,
episodes, cpu_s}`` (CPU-seconds of training, mean over seeds); ``full`` also carries
``beats_base_x4_low``, the lower end of the difference. ``--recorded`` prints the last full run that
was kept in benchmarks/results/learning.json, with commit, seeds and machine. ``--quick`` trains
for seconds, to try the script; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "demos"))  # the demo's own training, arms and evaluation

from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from study.results import Results  # noqa: E402
from study.settings import Settings  # noqa: E402
from study.variants import BY_NAME, FULL, RECORDED, VARIANTS  # noqa: E402

from swarm_ui.errors import SwarmError  # noqa: E402
from swarm_ui.rundir import write_atomic  # noqa: E402

RECORD = HERE / "results" / "learning.json"
RESAMPLES = 4000
SPLITS = {"parameters": "new_parameters", "templates": "new_templates", "apps": "new_apps"}
QUICK: dict[str, Any] = {
    "iterations": 1, "shared_iterations": 1, "episodes": 8, "shared_steps": 3, "steps": 3,
    "episodes_test": 24, "episodes_other": 8,
}  # fmt: skip
Matrix = list[list[float]]
"""Outcomes ``[episodes][seeds]``."""


class Row(NamedTuple):
    """One policy on one split."""

    name: str
    split: str
    outcomes: Matrix
    cpu_s: float


def run(
    folder: Path, settings: Settings, seeds: Sequence[int], names: Sequence[str], *, control: bool
) -> None:
    """Train and evaluate whatever of the study is not there yet."""
    from study.console import Screen
    from study.repeat import Study
    from study.session import agent_folder, check_learning

    check_learning(settings)
    with Screen() as screen:
        study = Study(folder, agent_folder(settings), settings, screen)
        study.untrained()
        study.base()
        for seed in seeds:
            for name in names:
                seconds = study.trained(seed, BY_NAME[name])
                if control and name == FULL.name:
                    study.more_stage_one(seed, seconds)


def rows(folder: Path) -> list[Row]:
    """All that was measured there."""
    found: list[Row] = []
    singles = {
        "untrained": ("untrained", "base-greedy"),
        "base_x1": ("base", "base-greedy"),
        "base_x4": ("base", "base-vote"),
    }
    arms = {"": "trained-team", "_vote": "trained-vote", "_greedy": "trained-greedy"}
    for split in SPLITS:
        for name, (cell, arm) in singles.items():
            found += _row(name, split, [folder / cell], arm)
        for variant in VARIANTS:
            cells = sorted(folder.glob(f"{variant.name}-[0-9]*"))
            for suffix, arm in arms.items():
                if suffix == "" or variant.team or (variant.vote and suffix == "_greedy"):
                    shown = variant.arm if suffix == "" else arm
                    found += _row(variant.name + suffix, split, cells, shown)
        found += _row("more_stage1", split, sorted(folder.glob("stage1-[0-9]*")), "stage1-vote")
    return found


def _row(name: str, split: str, cells: Sequence[Path], arm: str) -> list[Row]:
    """The row, if every run of it is there; an episode that a fault masked is left out."""
    results = [Results.load(cell) for cell in cells]
    played = [found for r in results if (found := r.find(split, arm)) is not None]
    if not played or len(played) < len(cells):
        return []
    jobs = {p.jobs for p in played}
    if len(jobs) != 1:
        raise SystemExit(f"{name}, {split}: its runs were not tested on the same episodes")
    columns = zip(*(p.outcomes for p in played), strict=True)
    outcomes = [[float(v) for v in column if v is not None] for column in columns]
    spent = mean(r.training_cpu_seconds for r in results)
    return [Row(name, split, [o for o in outcomes if o], spent)]


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """95 % percentile interval of a mean over episodes."""
    rng, n = random.Random(0), len(values)
    means = sorted(mean(rng.choices(values, k=n)) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def figures(found: Sequence[Row]) -> dict[str, Any]:
    """The JSON object."""
    lines: list[dict[str, Any]] = []
    by_place = {(row.name, row.split): row for row in found}
    for row in found:
        each = [mean(o) for o in row.outcomes]
        low, high = bootstrap(each)
        line = {
            "name": row.name, "split": SPLITS[row.split], "success": mean(each), "low": low,
            "high": high, "seeds": max(map(len, row.outcomes)), "episodes": len(each),
            "cpu_s": row.cpu_s, "by_seed": by_seed(row.outcomes),
        }  # fmt: skip
        base = by_place.get(("base_x4", row.split))
        if base is not None and row is not base and len(base.outcomes) == len(row.outcomes):
            gaps = [a - mean(b) for a, b in zip(each, base.outcomes, strict=True)]
            down, up = bootstrap(gaps)
            line |= {"over_base_x4": mean(gaps), "beats_base_x4_low": down, "over_high": up}
        lines.append(line)
    return {"rows": lines}


def by_seed(outcomes: Matrix) -> list[float]:
    """Success of each seed; of episodes that no seed lost to a fault."""
    most = max(map(len, outcomes))
    whole = [o for o in outcomes if len(o) == most]
    return [mean(o[k] for o in whole) for k in range(most)]


def show(data: dict[str, Any], console: Console) -> None:
    """One table a split."""
    for split in SPLITS.values():
        table = Table(title=f"simulated phone, {split.replace('_', ' ')}: success %, 95 %")
        for column in ("policy", "success", "each seed", "over base x4", "episodes", "CPU s"):
            table.add_column(column, justify="left" if column == "policy" else "right")
        for line in (r for r in data["rows"] if r["split"] == split):
            gap = "" if "over_base_x4" not in line else _percent(
                line["over_base_x4"], line["beats_base_x4_low"], line["over_high"], "+"
            )  # fmt: skip
            table.add_row(
                line["name"], _percent(line["success"], line["low"], line["high"]),
                " ".join(f"{100 * v:.1f}" for v in line["by_seed"]), gap, str(line["episodes"]),
                f"{line['cpu_s']:.0f}" if line["cpu_s"] else "",
            )  # fmt: skip
        console.print(table)
    console.print("The phone is simulated and its critic scripted: not AndroidWorld scores.")


def _percent(value: float, low: float, high: float, sign: str = "") -> str:
    return f"{100 * value:{sign}.1f} [{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"


def recorded() -> dict[str, Any]:
    """The last full run that was kept."""
    if not RECORD.exists():
        raise SystemExit(f"{RECORD.name}: no full run was kept yet; run with --out FOLDER --record")
    found = json.loads(RECORD.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def where_from(seeds: Sequence[int]) -> dict[str, Any]:
    """What a record says of itself."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True, check=False
    ).stdout.strip()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
    return {"commit": commit, "training_seeds": list(seeds), "machine": machine}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="folder of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--processes", type=int, default=Settings().processes)
    parser.add_argument("--record", action="store_true", help="keep it in benchmarks/results")
    parser.add_argument("--recorded", action="store_true", help="print what was kept")
    parser.add_argument("--quick", action="store_true", help="under 60 s; figures mean nothing")
    given = parser.parse_args()
    if given.recorded:
        data = recorded()
    else:
        settings = Settings(**RECORDED, processes=given.processes)
        if given.quick:
            settings, given.seeds = dataclasses.replace(settings, processes=1, **QUICK), [1]
        elif given.out is None:
            parser.error("--out FOLDER is needed (or --quick, or --recorded)")
        with tempfile.TemporaryDirectory() as beside:
            folder = given.out or Path(beside)
            names = [FULL.name] if given.quick else given.only
            try:
                run(folder, settings, given.seeds, names, control=not given.quick)
            except SwarmError as error:
                raise SystemExit(f"error: {error}") from error
            data = figures(rows(folder))
        if given.record:
            data |= where_from(given.seeds)
            write_atomic(RECORD, json.dumps(data, indent=1) + "\n")
    show(data, Console(width=140, soft_wrap=True))
    print(json.dumps(data))


if __name__ == "__main__":
    main()
