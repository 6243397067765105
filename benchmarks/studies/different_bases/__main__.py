"""Do four agents with other stage-1 seeds or data give a vote more than four clones?

    python -m benchmarks.studies.different_bases --out runs/different_bases \\
        --continued runs/invented/agents/stage1-{1,2,3}
    python -m benchmarks.studies.different_bases --out runs/different_bases --scratch
    python -m benchmarks.studies.different_bases --out runs/different_bases --summarise --record
    python -m benchmarks.studies.different_bases --recorded
    python -m benchmarks.studies.different_bases --quick

First the headroom: how often any of four agents is right, less how often the best of them is, with
one call each and shuffled views. Four clones are compared with four different agents on the same
screens, which the votes of both reach: the shipped base agent and three agents that had more stage
1 on other devices (``--continued``, agents of benchmarks.studies.invented_training), or four short
trainings from scratch (``--scratch``). The scripted solver grades every decision. Then the success
of all votes. Finished cells are not repeated. The record holds the cells, without agents:
``--restore`` writes those that the folder lacks. The phone is simulated. The last line is JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study, show_study
from benchmarks.studies.struct_files import write_struct
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings

NAME = "different_bases"


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--continued", type=Path, nargs="+", default=[], metavar="AGENT",
                        help="three agents after more stage 1 of the shipped one")  # fmt: skip
    parser.add_argument("--scratch", action="store_true", help="train four agents from scratch")
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.different_bases.plan import Plan
    from benchmarks.studies.different_bases.report import Study, markdown, study_of

    study = recorded_study(
        given, NAME, Study, settings=Plan(),
        run=lambda folder: _run(
            folder, given.continued, scratch=given.scratch, quick=given.quick
        ),
        read=study_of,
    )  # fmt: skip
    show_study(study, markdown(study), "rows", "contrasts")
    return 0


def _run(folder: Path, others: Sequence[Path], *, scratch: bool, quick: bool) -> None:
    """Make every cell that does not exist yet."""
    check_learning(Settings())
    from benchmarks.studies.different_bases.agents import continued, from_scratch
    from benchmarks.studies.different_bases.cells import play
    from benchmarks.studies.different_bases.plan import CONTINUED, QUICK, SCRATCH, SPLITS, Plan

    plan = QUICK if quick else Plan()
    check_study(folder / "settings.json", plan)
    pools = {CONTINUED: continued(others)} if others else {}
    if scratch or quick:
        pools[SCRATCH] = from_scratch(folder / "agents", plan.steps)
    for split in SPLITS:
        for pool, agents in pools.items():
            path = folder / "cells" / f"{pool}-{split}.json"
            if not path.exists():
                cell = play(pool, agents, split, plan)
                write_struct(path, cell)
                print(f"{pool}, {split}: {cell.seconds:.0f} CPU-s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
