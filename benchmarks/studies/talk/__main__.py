"""Effect of messages in a trained team: decisions on the same screens with and without its edges.

    python -m benchmarks.studies.talk --out runs/talk
    python -m benchmarks.studies.talk --out runs/talk --summarise --record
    python -m benchmarks.studies.talk --recorded
    python -m benchmarks.studies.talk --quick

Each seed trains a team as the demo does (stage 2 on the embedded phone, from the shipped base
agent). The team plays validation episodes without edges. On every screen, the same team also
decides with messages over the DAG that the demo tests it on. The scripted critic, without errors,
grades the proposals of the last round. So both columns of the table describe the same states. They
show whether messages make the agents better, more similar, or both. Finished cells are not
repeated. The record holds the cells, without teams; ``--restore`` writes those that the folder
lacks. The phone is simulated. The last line is JSON: ``rows`` of ``{name, success, low, high,
seeds, …}``, where ``success`` is a share of decisions, and ``contrasts``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study, show_study
from benchmarks.studies.struct_files import write_struct
from benchmarks.studies.talk.plan import QUICK, Plan
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings

NAME = "talk"


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.talk.report import Study, markdown, study_of

    seeds = given.seeds[:1] if given.quick else given.seeds
    study = recorded_study(
        given, NAME, Study, settings=Plan(),
        run=lambda folder: _run(folder, seeds, quick=given.quick),
        read=study_of,
    )  # fmt: skip
    show_study(study, markdown(study), "rows", "contrasts")
    return 0


def _run(folder: Path, seeds: Sequence[int], *, quick: bool) -> None:
    """Make every cell that does not exist yet."""
    check_learning(Settings())
    from benchmarks.studies.talk.cells import play

    plan = QUICK if quick else Plan()
    check_study(folder / "settings.json", plan)
    display = ProgressDisplay()
    for seed in seeds:
        path = folder / "cells" / f"{seed}.json"
        if not path.exists():
            cell = play(folder / "teams" / str(seed), seed, plan, display)
            write_struct(path, cell)


if __name__ == "__main__":
    sys.exit(main())
