"""The effect of a critic's errors on the team, with and without the learned weight.

    python -m benchmarks.studies.critic_errors --out runs/critics
    python -m benchmarks.studies.critic_errors --out runs/critics --summarise

Stage 2 on the embedded phone, shorter than in the demo, from the shipped base agent. The arms are:
without a critic (the outcome is the credit of all messages), with critics of 0, 10 and 30 % errors,
and with a critic that prefers wrong actions; each critic with full and with the learned weight. All
arms of a seed use the same training episodes, and all arms play the same test episodes. Finished
cells are not repeated. The phone is simulated and the critic scripted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings, plain
from swarm_ui.storage.run_directory import write_atomic


@script
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--arms", nargs="+", help="only these, such as without 30-learned")
    parser.add_argument("--iterations", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=64, help="in each iteration")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--episodes-test", type=int, default=300)
    parser.add_argument("--summarise", action="store_true", help="print what is there as Markdown")
    given = parser.parse_args()
    settings = settings_of(given)
    check_learning(settings)
    if not given.summarise:
        study(given, settings)
    from benchmarks.studies.critic_errors.report import summary

    print(summary(given.out))
    return 0


def settings_of(given: argparse.Namespace) -> Settings:
    """The settings of all cells, except the seed."""
    return Settings(
        rounds=given.rounds,
        iterations=given.iterations,
        shared_iterations=given.iterations,
        episodes=given.episodes,
        shared_steps=50,
        rehearsal=0.0,  # the arms differ in what is learned from the critic, and in nothing else
        episodes_test=given.episodes_test,
        episodes_other=0,
        processes=1,
    )


def study(given: argparse.Namespace, settings: Settings) -> None:
    """Run every cell that is not finished."""
    from benchmarks.studies.critic_errors.cells import CriticCell, arm_names, base_outcomes, train

    unknown = set(given.arms or ()) - set(arm_names())
    if unknown:
        raise ConfigError(f"--arms: expected {', '.join(arm_names())}, got {min(unknown)!r}")
    check_study(given.out / "settings.json", plain(settings))
    display = ProgressDisplay()
    path = given.out / "base.json"
    if not path.exists():
        write_atomic(path, msgspec.json.encode(base_outcomes(settings)) + b"\n")
    done = [
        msgspec.json.decode(path.read_bytes(), type=CriticCell)
        for path in (given.out / "cells").glob("*.json")
    ]
    known = {cell.digest: cell.outcomes for cell in done if cell.digest}
    for seed in given.seeds:
        for name in given.arms or arm_names():
            path = given.out / "cells" / f"{name}-{seed}.json"
            if not path.exists():
                with display.bar(path.stem, settings.iterations + 1) as bar:
                    cell = train(settings, name, seed, bar.update, known)
                known[cell.digest] = cell.outcomes
                write_atomic(path, msgspec.json.encode(cell) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
