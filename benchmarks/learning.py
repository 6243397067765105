"""Gain of a team from learning: the full method against ablations and controls, on held-out tasks.

    python benchmarks/learning.py --out runs/learning [--seeds 1 2 3] [--only full rft]
    python benchmarks/learning.py --out runs/learning --summarise --record --pages
    python benchmarks/learning.py --out runs/more --restore --seeds 1 2 3 4 --only rft rft_outcome
    python benchmarks/learning.py --recorded
    python benchmarks/learning.py --quick

**The phone is simulated and its critic scripted; scores are not AndroidWorld scores.** Each run
trains a team of four from the shipped base agent on the phone (5 iterations of 112 episodes)
and plays the same test episodes: known templates with new parameters, new templates, new apps.
Finished runs and tests are not repeated, so the same command continues after an interruption, and
``--graphs`` adds test DAGs to runs that were tested on fewer. The record holds the outcomes of all
runs, without weights: ``--restore`` writes them where ``--out`` lacks them, and the same command
adds seeds and variants.

Rows: *untrained*, the architecture with random weights; *base_x1*, the base agent, greedy;
*base_x4*, four of it with shuffled views and the probability vote; *base_guard*, *base_shuffled*,
*base_clones*, *base_team*: greedy with a loop guard, one call on a shuffled view, a majority of
four sampled calls on one view, and four base agents on DAGs; *full*, the trained team on DAGs that
it never saw (``graphs`` of them; an episode's outcome is the mean over them), *full_vote* without
edges, *full_greedy* one of its agents; the same for every other variant
(studies/learning/variants.py). Variants without a team on DAGs have the vote as their row, with 4
calls a decision: *independent_voters*, *rft_unguided*, *rft_outcome*, and *single_agent*, whose one
agent is asked four times. *more_stage1* and *more_stage1_rft*: the base agent after further
training in stage 1 for the CPU time of *full* and of *rft*, four agents as in *base_x4*.
*without_edge_update_own*: on the DAG of its training.

Three contrasts are named in advance (studies/learning/figures.py). All else is exploratory.

Prints tables; the last line is JSON:

- ``rows`` of ``{name, split, success, low, high, cluster_low, cluster_high, t_low, t_high, seeds,
  episodes, graphs, by_seed, cpu_s, steps, samples, calls, work, iteration_s, peak_mb}``.
  ``success``: mean over seeds and episodes. ``low``, ``high``: bootstrap over episodes, which is
  too narrow, as it treats episodes of one template as independent; tables do not show it.
  ``cluster_*``: hierarchical bootstrap over seeds, templates and episodes. ``t_*``: Student's t
  over training seeds; null below three. ``steps`` of the optimiser, ``samples`` of all steps,
  ``calls`` of the model in training rollouts, means over seeds; null: none, or not counted.
  ``cpu_s``: CPU-seconds of training, and ``work``: ``{cpu_s, tokens}`` with the tokens of these
  calls (for more stage 1: of its lessons). *full* also has ``beats_base_x4_low``, the lower end of
  its difference to *base_x4*; ``over_own_agent`` is the gain of a vote or a team over one of its
  own agents, and ``over_own_vote`` that of a team on DAGs over its own vote without edges. All
  intervals are 95 %, those of differences clustered and paired.
- ``contrasts`` of ``{name, split, ours, theirs, equal, gap, low, high, t_low, t_high, each_seed,
  seeds, sides}``, paired and clustered; ``seeds`` is 0 where a side was not measured.
- ``comparisons`` of ``{split, other, gap, low, high, t_low, t_high, each_seed, seeds}``, *full*
  minus the other.
- of a record: ``origin``, ``settings``, ``checker``, ``episodes_hash`` of the test episodes, and
  ``cells``: date, commit and command of each run.

``--recorded`` prints the run that is kept in benchmarks/results/learning.json, and the rows of the
recorded run of benchmarks.studies.continuation: *web_before*, the phone's team on real MiniWoB++
pages, and *web_after*, the same team after training there. ``--pages`` writes the tables of the
record into docs/ and draws docs/pictures/learning.svg. ``--quick`` trains for seconds, to test the
script; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for benchmarks.studies

import msgspec  # noqa: E402
from rich.console import Console  # noqa: E402

from benchmarks.studies.continuation import report as continuation  # noqa: E402
from benchmarks.studies.learning.answers import answers  # noqa: E402
from benchmarks.studies.learning.cells import cell_origins, rows  # noqa: E402
from benchmarks.studies.learning.figures import data_hash, figures  # noqa: E402
from benchmarks.studies.learning.kept import kept_files  # noqa: E402
from benchmarks.studies.learning.picture import picture  # noqa: E402
from benchmarks.studies.learning.report import (  # noqa: E402
    coverage,
    short_table,
    show,
)
from benchmarks.studies.learning.variants import (  # noqa: E402
    BY_NAME,
    CONTROLLED,
    FULL,
    RECORDED,
)
from benchmarks.studies.options import parsed, study_options  # noqa: E402
from benchmarks.studies.recorded_study import recorded_study  # noqa: E402
from benchmarks.support.origin import origin  # noqa: E402
from benchmarks.support.records import read_record  # noqa: E402
from swarm_ui.experiment.script_runner import script  # noqa: E402
from swarm_ui.experiment.settings import Settings, plain  # noqa: E402
from swarm_ui.files import write_atomic  # noqa: E402

ROOT = HERE.parent
RECORDS = ("learning", "split")
"""The records of which the pages of results are made."""
QUICK: dict[str, Any] = {
    "iterations": 1, "shared_iterations": 1, "episodes": 8, "shared_steps": 3, "steps": 3,
    "episodes_test": 24, "episodes_other": 8,
}  # fmt: skip


def run(
    folder: Path,
    settings: Settings,
    seeds: Sequence[int],
    names: Sequence[str],
    *,
    control: bool,
    graphs: int,
) -> None:
    """Train and evaluate the parts of the study that are not finished."""
    from benchmarks.studies.learning.study import Study
    from swarm_ui.experiment.demo.demo_run import agent_folder, check_learning
    from swarm_ui.experiment.progress import ProgressDisplay

    check_learning(settings)
    display = ProgressDisplay()
    study = Study(folder, agent_folder(settings), settings, display, graphs=graphs)
    study.untrained()
    study.base()
    for seed in seeds:
        for name in names:
            seconds = study.trained(seed, BY_NAME[name])
            if control and name in CONTROLLED:
                study.more_stage_one(seed, BY_NAME[name], seconds)


def measured(folder: Path, settings: Settings) -> dict[str, Any]:
    """The figures of a folder, and where they come from."""
    found = rows(folder)
    if not found:
        raise SystemExit(f"error: no finished runs in '{folder}'")
    data = figures(found)
    data["origin"] = msgspec.to_builtins(origin("python benchmarks/learning.py"))
    data["settings"] = {**plain(settings), "processes": None}
    data["checker"] = max(row.checker for row in found)
    data["episodes_hash"] = data_hash(found)
    data["training_seeds"] = sorted({s for row in found if row.trained for s in row.runs})
    data["cells"] = cell_origins(folder)
    return data


def read(name: str) -> dict[str, Any]:
    """A record of benchmarks/results."""
    return read_record(name, dict[str, Any])


def recorded() -> dict[str, Any]:
    """The run that was kept, with the rows of web pages."""
    found = read("learning")
    found["rows"] += [row for row in continuation.rows() if row["name"].startswith("web_")]
    return found


def page_parts() -> list[tuple[str, str, str]]:
    """Page (path in the repository), name and text of every part that is made from records."""
    data, split = (read(name) for name in RECORDS)
    taught = read("invented_training_teacher")
    found = answers(data, split, read("split_model"), taught, read("windows"))
    return [
        ("docs/results.md", "answers", found),
        ("docs/results.md", "learning", f"{short_table(data)}\n{coverage(data)}"),
    ]


def write_pages() -> None:
    """Write the parts between their markers, and draw the picture."""
    for name, part, text in page_parts():
        page = (ROOT / name).read_text(encoding="utf-8")
        begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"error: {name} lacks the markers '{begin}' and '{end}'")
        write_atomic(ROOT / name, f"{before}{begin}\n\n{text}\n{end}{after}")
    picture(read("learning"), ROOT / "docs" / "pictures" / "learning.svg")


def parse() -> argparse.Namespace:
    """The options of the command line."""
    parser = study_options(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--graphs", type=int, default=3, help="unseen test DAGs of each run (3)")
    parser.add_argument("--processes", type=int, default=Settings().processes)
    parser.add_argument("--picture", type=Path, metavar="SVG", help="draw gains and intervals")
    parser.add_argument("--pages", action="store_true", help="write the record into docs/")
    given = parsed(parser, folder=True)
    if given.graphs < 0:
        parser.error(f"--graphs: expected at least 0, got {given.graphs}")
    return given


def study(given: argparse.Namespace) -> dict[str, Any]:
    """The figures of a folder, after what is missing there has been run."""
    settings = Settings(**RECORDED, processes=given.processes)
    names, graphs = given.only, given.graphs
    if given.quick:
        settings, given.seeds = dataclasses.replace(settings, processes=1, **QUICK), [1]
        names, graphs = [FULL.name], min(graphs, 1)
    common = {**plain(settings), "processes": None}
    return recorded_study(
        given, "learning", dict[str, Any], settings=common,
        files=lambda folder: kept_files(folder, common),
        run=lambda folder: run(
            folder, settings, given.seeds, names, control=not given.quick, graphs=graphs
        ),
        read=lambda folder: measured(folder, settings),
    )  # fmt: skip


@script
def main() -> int:
    given = parse()
    data = recorded() if given.recorded else study(given)
    if given.pages:
        write_pages()
    if given.picture:
        picture(data, given.picture)
    else:
        show(data, Console(width=150, soft_wrap=True))
    print(json.dumps(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
