"""Do edges learn faster from the credit of messages than from the outcome of an episode?

    python -m benchmarks.studies.edge_credit --out runs/edge_credit
    python -m benchmarks.studies.edge_credit --out runs/edge_credit --summarise --record
    python -m benchmarks.studies.edge_credit --recorded --picture docs/pictures/edge_credit.svg
    python -m benchmarks.studies.edge_credit --quick

On split facts every value that a task needs must be said by the agent that sees it. Edges learn
from the outcome less a price on tokens, as in benchmarks.studies.split, or from this and the credit
of the messages that they carried: of a scripted critic that knows which values are needed, with and
without errors, or of replays without each message, which know no solution and cost calls. All arms
have equal episodes and graphs, and six settings each are tried on validation parameters. The record
holds the cells; ``--restore`` writes those that the folder lacks, and the study goes on.

The agents and the critic are **scripted** and the phone is simulated: the study says nothing about
language models. Finished cells are not repeated. The last line is JSON: ``rows`` of ``{name,
templates, point, success, low, high, seeds, tokens, …}``, ``contrasts`` and ``speeds``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study, show_study
from benchmarks.studies.struct_files import write_struct
from swarm_ui.experiment.script_runner import check_study, script

NAME = "edge_credit"
FILES = ("settings.json", "oracle.json", "choices/*.json", "cells/*.json")
"""What the record holds of the study's folder."""


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--picture", type=Path, metavar="SVG", help="draw the learning curves")
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.edge_credit.picture import picture
    from benchmarks.studies.edge_credit.plan import Budget
    from benchmarks.studies.edge_credit.report import Study, markdown, study_of

    seeds = given.seeds[:1] if given.quick else given.seeds
    study = recorded_study(
        given, NAME, Study, settings=Budget(), files=FILES,
        run=lambda folder: _run(folder, seeds, quick=given.quick),
        read=study_of,
    )  # fmt: skip
    if given.picture is not None:
        picture(study, given.picture)
    show_study(study, markdown(study), "rows", "contrasts", "speeds")
    return 0


def _run(folder: Path, seeds: Sequence[int], *, quick: bool) -> None:
    """Make every cell that does not exist yet."""
    from benchmarks.studies.edge_credit.cells import Cells
    from benchmarks.studies.edge_credit.plan import ARMS, CANDIDATES, QUICK, Budget

    budget = QUICK if quick else Budget()
    check_study(folder / "settings.json", budget)
    cells = Cells(folder, budget)
    if not (folder / "oracle.json").exists():
        write_struct(folder / "oracle.json", cells.oracle())
    for arm in CANDIDATES:
        if not cells.choice_path(arm).exists():
            write_struct(cells.choice_path(arm), cells.choose(arm))
            print(f"setting chosen: {arm}", file=sys.stderr, flush=True)
    # The first two arms decide the first and the third contrast, and leaving out costs most.
    for arms in (ARMS[:2], ARMS[2:3], ARMS[3:]):
        for seed, arm in product(seeds, arms):
            if not cells.path(arm, seed).exists():
                cell = cells.run(arm, seed)
                write_struct(cells.path(arm, seed), cell)
                spent = cell.learned.seconds
                print(f"{arm}, seed {seed}: {spent:.0f} CPU-s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
