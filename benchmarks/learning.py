"""Gain of a team from learning: the full method against ablations and controls, on held-out tasks.

    python benchmarks/learning.py --out runs/learning [--seeds 1 2 3] [--only full rft]
    python benchmarks/learning.py --recorded
    python benchmarks/learning.py --quick

**The phone is simulated and its critic scripted; scores are not AndroidWorld scores.** Each run
trains a team of four from the shipped base agent as the demo does (4 iterations of 112 episodes)
and plays the same test episodes: known templates with new parameters, new templates, new apps.
Finished runs are not repeated, so the same command continues after an interruption.

Rows: *untrained*, the architecture with random weights; *base_x1*, the base agent, greedy;
*base_x4*, four of it with shuffled views and the probability vote; *base_guard*, *base_shuffled*,
*base_clones*, *base_team*: greedy with a loop guard, one call on a shuffled view, a majority of
four sampled calls on one view, and four base agents on a DAG; *full*, the trained team on an
unseen DAG, *full_vote* without edges, *full_greedy* one of its agents; the same for every other
variant (studies/learning/variants.py), of which *independent_voters* has no DAG; *more_stage1*,
the base agent after further training in stage 1 for the CPU time of *full*, four agents as in
*base_x4*.

After the table of each split, *full* minus every other row: the gain from each part of the method.

``success`` is the mean over seeds and episodes. ``low`` and ``high``: 95 % bootstrap over episodes,
each with its outcomes under all seeds. They do not contain the variance between seeds, so the
table also has the value of each seed. Differences resample the same episodes on both sides.

Prints tables; the last line is JSON: ``rows`` of ``{name, split, success, low, high, seeds,
episodes, cpu_s}`` (CPU-seconds of training, mean over seeds; also seconds of an iteration and peak
memory of the training process); ``full`` also has ``beats_base_x4_low``, the lower end of the
difference; ``over_own_agent`` is the gain of a vote or a team over one of its own agents;
``comparisons`` of ``{split, other, gap, low, high, each_seed}``, *full* minus the other.
``--recorded`` prints the last full run that was kept in benchmarks/results/learning.json, with
commit, seeds and machine, and the rows of the recorded run of benchmarks.studies.continuation:
*web_before*, the phone's team on real MiniWoB++ pages, and *web_after*, the same team after
training there. ``--quick`` trains for seconds, to test the script; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, mean
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for benchmarks.studies

from learning_report import SPLITS, markdown, picture, show  # noqa: E402
from rich.console import Console  # noqa: E402

from benchmarks.origin import commit, machine  # noqa: E402
from benchmarks.studies.continuation import report as continuation  # noqa: E402
from benchmarks.studies.learning.variants import BY_NAME, FULL, RECORDED, VARIANTS  # noqa: E402
from swarm_ui.errors import SwarmError  # noqa: E402
from swarm_ui.experiment.results import Results  # noqa: E402
from swarm_ui.experiment.settings import Settings  # noqa: E402
from swarm_ui.storage.run_directory import RunDirectory, write_atomic  # noqa: E402

RECORD = HERE / "results" / "learning.json"
RESAMPLES = 4000
QUICK: dict[str, Any] = {
    "iterations": 1, "shared_iterations": 1, "episodes": 8, "shared_steps": 3, "steps": 3,
    "episodes_test": 24, "episodes_other": 8,
}  # fmt: skip
Matrix = list[list[float]]
"""Outcomes ``[episodes][seeds]``."""


class Row(NamedTuple):
    """The results of one policy on one split."""

    name: str
    split: str
    outcomes: Matrix
    cpu_s: float
    iteration_s: float | None = None
    """Wall time of an iteration of training."""
    peak_mb: float | None = None
    """Peak memory of a training process, 2**20 bytes."""


def run(
    folder: Path, settings: Settings, seeds: Sequence[int], names: Sequence[str], *, control: bool
) -> None:
    """Train and evaluate the parts of the study that are not finished."""
    from benchmarks.studies.learning.study import Study
    from swarm_ui.experiment.demo.demo_run import agent_folder, check_learning
    from swarm_ui.experiment.progress import ProgressDisplay

    check_learning(settings)
    display = ProgressDisplay()
    study = Study(folder, agent_folder(settings), settings, display)
    study.untrained()
    study.base()
    for seed in seeds:
        for name in names:
            seconds = study.trained(seed, BY_NAME[name])
            if control and name == FULL.name:
                study.more_stage_one(seed, seconds)


def rows(folder: Path) -> list[Row]:
    """The rows that were measured in a folder."""
    found: list[Row] = []
    singles = {
        "untrained": ("untrained", "base-greedy"),
        "base_x1": ("base", "base-greedy"),
        "base_guard": ("base", "base-guard"),
        "base_shuffled": ("base", "base-shuffled"),
        "base_clones": ("base", "base-clones"),
        "base_x4": ("base", "base-vote"),
        "base_team": ("base", "base-team"),
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
    """The row, if all of its runs are finished; masked episodes are left out."""
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
    return [Row(name, split, [o for o in outcomes if o], spent, *costs(cells))]


def costs(cells: Sequence[Path]) -> tuple[float | None, float | None]:
    """Seconds of an iteration and peak memory, over all the runs."""
    lines: list[dict[str, Any]] = [
        line for cell in cells for line in RunDirectory.open_existing(cell).metrics()
    ]
    took = [r["rollout_seconds"] + r["update_seconds"] for r in lines if "rollout_seconds" in r]
    held = [r["peak_memory_mb"] for r in lines if r.get("peak_memory_mb") is not None]
    return (mean(took) if took else None), (max(held) if held else None)


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """95 % percentile interval of a mean over episodes."""
    rng, n = random.Random(0), len(values)
    means = sorted(fmean(rng.choices(values, k=n)) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def figures(found: Sequence[Row]) -> dict[str, Any]:
    """The figures as a JSON object."""
    lines: list[dict[str, Any]] = []
    by_place = {(row.name, row.split): row for row in found}
    for row in found:
        each = [mean(o) for o in row.outcomes]
        low, high = bootstrap(each)
        line = {
            "name": row.name, "split": SPLITS[row.split], "success": mean(each), "low": low,
            "high": high, "seeds": max(map(len, row.outcomes)), "episodes": len(each),
            "cpu_s": row.cpu_s, "by_seed": by_seed(row.outcomes),
            "iteration_s": row.iteration_s, "peak_mb": row.peak_mb,
        }  # fmt: skip
        base = by_place.get(("base_x4", row.split))
        if base is not None and row is not base and len(base.outcomes) == len(row.outcomes):
            gap, down, up = paired(row, base)
            line |= {"over_base_x4": gap, "beats_base_x4_low": down, "over_high": up}
        own = by_place.get((row.name.removesuffix("_vote") + "_greedy", row.split))
        if own is not None and len(own.outcomes) == len(row.outcomes):
            gap, down, up = paired(row, own)
            line |= {"over_own_agent": gap, "over_own_low": down, "over_own_high": up}
        lines.append(line)
    return {"rows": lines, "comparisons": comparisons(found)}


def comparisons(found: Sequence[Row]) -> list[dict[str, Any]]:
    """*full* minus each other row of its split, paired by episode."""
    full = {row.split: row for row in found if row.name == FULL.name}
    lines: list[dict[str, Any]] = []
    for row in found:
        mine = full.get(row.split)
        if mine is None or row is mine or len(mine.outcomes) != len(row.outcomes):
            continue
        gap, low, high = paired(mine, row)
        ours, theirs = by_seed(mine.outcomes), by_seed(row.outcomes)
        theirs = theirs * len(ours) if len(theirs) == 1 else theirs
        each = [a - b for a, b in zip(ours, theirs, strict=False)]
        lines.append(
            {"split": SPLITS[row.split], "other": row.name, "gap": gap, "low": low,
             "high": high, "each_seed": each}
        )  # fmt: skip
    return lines


def paired(ours: Row, theirs: Row) -> tuple[float, float, float]:
    """Mean difference on the same episodes, and its interval."""
    gaps = [mean(a) - mean(b) for a, b in zip(ours.outcomes, theirs.outcomes, strict=True)]
    return mean(gaps), *bootstrap(gaps)


def by_seed(outcomes: Matrix) -> list[float]:
    """Success of each seed, over the episodes that are masked under no seed."""
    most = max(map(len, outcomes))
    whole = [o for o in outcomes if len(o) == most]
    return [mean(o[k] for o in whole) for k in range(most)]


def recorded() -> dict[str, Any]:
    """The last full run that was kept."""
    if not RECORD.exists():
        raise SystemExit(f"{RECORD.name}: no full run was recorded; run with --out FOLDER --record")
    found = json.loads(RECORD.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    found["rows"] += [row for row in continuation.rows() if row["name"].startswith("web_")]
    return found


def where_from(seeds: Sequence[int]) -> dict[str, Any]:
    """A line with the origin of a record: commit, seeds and machine."""
    return {"commit": commit(), "training_seeds": list(seeds), "machine": machine()}


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
    parser.add_argument("--markdown", action="store_true", help="tables for docs/results_tables.md")
    parser.add_argument("--picture", type=Path, metavar="SVG", help="draw success and intervals")
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
    if given.picture:
        picture(data, given.picture)
    if given.markdown:
        print(markdown(data))
    else:
        show(data, Console(width=150, soft_wrap=True))
    print(json.dumps(data))


if __name__ == "__main__":
    main()
