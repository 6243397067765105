"""The greedy base agent on real MiniWoB++ pages that it was not trained on.

    python -m benchmarks.studies.miniwob --out runs/web            # the 49 reference tasks
    python -m benchmarks.studies.miniwob --out runs/web --blind    # all others: run once
    python -m benchmarks.studies.miniwob --out runs/web --summarise --record
    python -m benchmarks.studies.miniwob --recorded
    python -m benchmarks.studies.miniwob --quick

The control sends random actions in the same episodes. Needs a Chromium. Outcomes are written after
every task, so the same command continues after an interruption; the record holds them, and
``--restore`` writes those that the folder lacks. Scores are not comparable with published ones: the
observation is ours, there is no clock, and success is a raw reward above 0. The last line is JSON:
``rows`` of ``{name, success, low, high, seeds, …}``, ``contrasts`` and ``tasks``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.studies.miniwob.plan import POLICIES, QUICK, Plan, Tasks
from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study, show_study
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.environments import miniwob as web
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings

NAME = "miniwob"


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--blind", action="store_true", help="the tasks that nobody looked at")
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.miniwob.report import Study, markdown, study_of

    tasks: Tasks = "blind" if given.blind else "reference"
    study = recorded_study(
        given, NAME, Study, settings=Plan(),
        run=lambda folder: _run(folder, tasks, quick=given.quick),
        read=study_of,
    )  # fmt: skip
    show_study(study, markdown(study), "rows", "contrasts", "tasks")
    return 0


def _run(folder: Path, tasks: Tasks, *, quick: bool) -> None:
    """Play what is not there yet."""
    web.checked_browser()
    check_learning(Settings())
    from benchmarks.studies.miniwob.cells import play

    plan = QUICK if quick else Plan()
    check_study(folder / "settings.json", plan)
    display = ProgressDisplay()
    for policy in POLICIES:
        path = folder / "cells" / f"{tasks}-{policy.replace(' ', '-')}.json"
        play(path, tasks, policy, plan, display)


if __name__ == "__main__":
    sys.exit(main())
