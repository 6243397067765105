"""Does a varied training world carry over to new apps? Stage 2 with invented devices.

    python -m benchmarks.studies.invented_training --out runs/invented
    python -m benchmarks.studies.invented_training --out runs/invented --blind
    python -m benchmarks.studies.invented_training --out runs/invented --summarise --record
    python -m benchmarks.studies.invented_training --out runs/more --restore --seeds 1 2 3 4
    python -m benchmarks.studies.invented_training --recorded [--study general]
    python -m benchmarks.studies.invented_training --quick

Stage 2 (RFT, scripted critic, four voters without edges) trains the shipped base agent on the
phone's training templates; in most arms half of the episodes are on 8 to 64 devices with invented
apps instead. All arms have equally many episodes and optimiser steps. Controls: the untrained team,
credit by outcome, and more stage 1 with demonstrations on the same devices for the same CPU time.
The general agent of this package, which had more of that stage 1, is tested beside them.
``--study general`` is a study of its own, with its own record: stage 2 of the general agent. So is
``--study teacher``: a teacher shows the solver's action where no agent is right, in longer training
with up to 512 devices.
Each is tested as a vote of four on known templates, new templates, new apps and other invented
devices; ``--blind`` plays the blind set, once, after all training. Finished cells are not repeated.
The record holds the cells, without the trained agents: ``--restore`` writes those that the folder
lacks, and the study goes on from there. The phone is simulated and the critic scripted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study, show_study
from benchmarks.studies.struct_files import write_struct
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings

if TYPE_CHECKING:
    from benchmarks.studies.invented_training.cells import Cells

NAMES = {
    "base": "invented_training",
    "general": "invented_training_general",
    "teacher": "invented_training_teacher",
}
"""Names of the records, by study."""
FILES = ("settings.json", "cells/*.json", "blind.json")
"""What the record holds of the study's folder."""


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--study", choices=tuple(NAMES), default="base", help="which study")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", help="only these arms, such as 0 32 stage1")
    parser.add_argument("--blind", action="store_true", help="play the blind set, which ends it")
    parser.add_argument("--picture", type=Path, metavar="SVG", help="draw success against devices")
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.invented_training.picture import picture
    from benchmarks.studies.invented_training.plan import STUDIES
    from benchmarks.studies.invented_training.report import Record, record_of, summary

    record = recorded_study(
        given, NAMES[given.study], Record, settings=STUDIES[given.study], files=FILES,
        run=lambda folder: _study(given, folder),
        read=record_of,
    )  # fmt: skip
    if given.picture is not None:
        picture(record, given.picture)
    show_study(record, summary(record), "rows", "contrasts")
    return 0


def _study(given: argparse.Namespace, folder: Path) -> None:
    """Make every cell that does not exist yet."""
    check_learning(Settings())
    from benchmarks.studies.invented_training.cells import Cells
    from benchmarks.studies.invented_training.plan import BASE, GENERAL, STUDIES, design_of, quick

    plan = quick(STUDIES[given.study]) if given.quick else STUDIES[given.study]
    design = design_of(plan)
    unknown = sorted(set(given.only or ()) - set(design.by_name))
    if unknown:
        raise ConfigError(f"--only: expected {', '.join(design.by_name)}, got {unknown[0]!r}")
    seeds: Sequence[int] = given.seeds[:1] if given.quick else given.seeds
    check_study(folder / "settings.json", plan)
    cells, display = Cells(folder, plan), ProgressDisplay()
    if cells.blind_path().exists():
        raise ConfigError(f"'{folder}' has played its blind set, so the study is finished")
    if given.blind:
        return _blind(cells, seeds)
    untrained = {BASE: cells.base}
    if plan.start == BASE:
        untrained[GENERAL] = cells.general
    for name, make in untrained.items():
        if cells.load(name, 0) is None:
            write_struct(cells.path(name, 0), make())
    for name, seed in _order(given.only or list(design.by_name), seeds, design.blind_arms):
        if cells.load(name, seed) is None:
            with display.bar(f"{name}-{seed}", plan.iterations + 1) as bar:
                cell = cells.trained(name, seed, bar.update)
            write_struct(cells.path(name, seed), cell)
    if given.quick:
        _blind(cells, seeds)


def _order(
    names: Sequence[str], seeds: Sequence[int], contrasted: Sequence[str]
) -> list[tuple[str, int]]:
    """The arms of the contrasts with all seeds, then the others."""
    groups = [[n for n in names if n in contrasted], [n for n in names if n not in contrasted]]
    return [(name, seed) for group in groups for seed in seeds for name in group]


def _blind(cells: Cells, seeds: Sequence[int]) -> None:
    """Play the blind set with the arms of the contrasts, and write all outcomes at once."""
    from benchmarks.studies.invented_training.plan import BASE, GENERAL, design_of

    played = design_of(cells.plan).blind_arms
    untrained = [BASE, GENERAL] if cells.plan.start == BASE else [BASE]
    teams = [(name, 0) for name in untrained]
    teams += [(name, seed) for name in played for seed in seeds]
    missing = [f"{name}-{seed}" for name, seed in teams if cells.load(name, seed) is None]
    if missing:
        raise ConfigError(f"--blind ends the study; not finished: {', '.join(missing)}")
    trained = [team for team in teams if team[0] in played]
    lost = [f"{n}-{s}" for n, s in trained if not cells.agent(n, s).exists()]
    if lost:
        raise ConfigError(
            f"--blind needs the trained agents, which a record does not hold; not in "
            f"'{cells.folder / 'agents'}': {', '.join(lost)}. To train them again, delete their "
            f"files in '{cells.folder / 'cells'}' and repeat the command without --blind"
        )
    found = {f"{name}-{seed}": cells.blind(name, seed) for name, seed in teams}
    write_struct(cells.blind_path(), found)


if __name__ == "__main__":
    sys.exit(main())
