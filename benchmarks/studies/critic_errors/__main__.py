"""The effect of a critic's errors on the team, with and without the learned weight.

    python -m benchmarks.studies.critic_errors --out runs/critics
    python -m benchmarks.studies.critic_errors --out runs/critics --summarise --record
    python -m benchmarks.studies.critic_errors --recorded
    python -m benchmarks.studies.critic_errors --quick

Stage 2 on the embedded phone, shorter than in the demo, from the shipped base agent. The arms are:
without a critic (the outcome is the credit of all messages), with critics of 0, 10 and 30 % errors,
and with a critic that prefers wrong actions; each critic with full and with the learned weight. All
arms of a seed use the same training episodes, and all arms play the same test episodes. Finished
cells are not repeated. The record holds the cells; ``--restore`` writes those that the folder
lacks. The phone is simulated and the critic scripted. The last line is JSON: ``rows`` of ``{name,
success, low, high, seeds, …}`` and ``contrasts``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.critic_errors.plan import ARMS, QUICK, Plan
from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study, show_study
from benchmarks.studies.struct_files import read_struct, write_struct
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script

NAME = "critic_errors"
FILES = ("settings.json", "base.json", "cells/*.json")
"""What the record holds of the study's folder."""


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--arms", nargs="+", help="only these, such as without 30-learned")
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.critic_errors.report import Study, markdown, study_of

    seeds = given.seeds[:1] if given.quick else given.seeds
    study = recorded_study(
        given, NAME, Study, settings=Plan(), files=FILES,
        run=lambda folder: _run(folder, seeds, given.arms or ARMS, quick=given.quick),
        read=study_of,
    )  # fmt: skip
    show_study(study, markdown(study), "rows", "contrasts")
    return 0


def _run(folder: Path, seeds: Sequence[int], arms: Sequence[str], *, quick: bool) -> None:
    """Make every cell that does not exist yet."""
    unknown = set(arms) - set(ARMS)
    if unknown:
        raise ConfigError(f"--arms: expected {', '.join(ARMS)}, got {min(unknown)!r}")
    plan = QUICK if quick else Plan()
    settings = plan.settings()
    check_learning(settings)
    from benchmarks.studies.critic_errors.cells import CriticCell, base_outcomes, train

    check_study(folder / "settings.json", plan)
    if not (folder / "base.json").exists():
        write_struct(folder / "base.json", base_outcomes(settings))
    done = [read_struct(path, CriticCell) for path in (folder / "cells").glob("*.json")]
    known = {cell.digest: cell.outcomes for cell in done}
    display = ProgressDisplay()
    for seed in seeds:
        for name in arms:
            path = folder / "cells" / f"{name}-{seed}.json"
            if not path.exists():
                with display.bar(path.stem, settings.iterations + 1) as bar:
                    cell = train(settings, name, seed, bar.update, known)
                known[cell.digest] = cell.outcomes
                write_struct(path, cell)


if __name__ == "__main__":
    sys.exit(main())
