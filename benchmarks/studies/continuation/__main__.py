"""Gain and forgetting of a team that continues to learn in other environments.

    python -m benchmarks.studies.continuation --out runs/continuation --seeds 1 2 3
    python -m benchmarks.studies.continuation --out runs/continuation --summarise --record
    python -m benchmarks.studies.continuation --recorded
    python -m benchmarks.studies.continuation --quick

The same trainer trains on the phone, then on real MiniWoB++ pages, then on synthetic recorded web
tasks. After each stage, the same test episodes are played in all three environments. Two controls:
the same CPU time of training on synthetic samples of stage 1 only, and the same stages with such
samples in every update (rehearsal). Needs a Chromium. Finished cells are not repeated, so the same
command continues after an interruption. The record holds the cells, without adapters: ``--restore``
writes those that the folder lacks, and another seed can be added. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study
from swarm_ui.experiment.demo.demo_run import agent_folder, check_learning
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import script

ARMS = ("web", "control", "traces", "rehearsed")
FILES = ("config.json", "look.json", "*/measured.json")
"""What the record holds of the study's folder."""


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.continuation.report import NAME, markdown, study_of

    data = recorded_study(
        given, NAME, dict[str, Any], settings=None, files=FILES,
        run=lambda folder: _study(given, folder), read=study_of,
    )  # fmt: skip
    print(markdown(data))
    print(json.dumps({name: data[name] for name in ("rows", "differences")}))
    return 0


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--phone-seed", type=int, help="all go on from this seed's phone team")
    parser.add_argument(
        "--teams", help="folder of benchmarks/learning.py's runs, whose RFT teams go on from there"
    )
    parser.add_argument("--web-iterations", type=int, default=3, help="(default: 3)")
    parser.add_argument("--web-episodes", type=int, default=112, help="an iteration (default: 112)")
    parser.add_argument("--steps", type=int, default=40, help="updates an iteration (default: 40)")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--agent", help="base agent (default: the one that ships)")
    return parsed(parser, folder=True)


def _study(given: argparse.Namespace, folder: Path) -> None:
    from swarm_ui.experiment.settings import Settings

    settings = Settings(agent=given.agent)
    check_learning(settings)
    from benchmarks.studies.continuation.course import QUICK, Course
    from benchmarks.studies.continuation.study import Continuation

    seeds: Sequence[int] = given.seeds[:1] if given.quick else given.seeds
    display = ProgressDisplay()
    course = QUICK if given.quick else Course(
        phone_seed=given.phone_seed, teams=given.teams, web_iterations=given.web_iterations,
        web_episodes=given.web_episodes, steps=given.steps,
    )  # fmt: skip
    study = Continuation(folder, agent_folder(settings), course, display)
    study.base()
    for seed in seeds:
        study.phone(seed if course.phone_seed is None else course.phone_seed)
        study.web(seed)
    for seed in seeds if "control" in given.arms else ():
        study.control(seed)
    for seed in seeds if "traces" in given.arms else ():
        study.traces(seed)
    for seed in seeds if "rehearsed" in given.arms else ():
        study.web(seed, rehearse=True)
        if "traces" in given.arms:
            study.traces(seed, rehearse=True)


if __name__ == "__main__":
    sys.exit(main())
