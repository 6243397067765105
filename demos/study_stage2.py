"""What stage 2 gains on the embedded phone, over several seeds, beside more stage 1.

    python demos/study_stage2.py --out runs/stage2 --seeds 1 2 3
    python demos/study_stage2.py --out runs/stage2 --summarise

For each seed: stage 2 by each method from the base agent, and as control as many CPU-seconds of
more stage 1; then all arms on the same test episodes. A cell that is done is not done again, so
the same command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from study.console import Screen
from study.session import agent_folder, check_learning
from study.settings import METHODS, Settings

from swarm_ui.errors import SwarmError


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--agent", help="base agent (default: the one that ships)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--episodes-test", type=int, default=400, help="on known templates")
    parser.add_argument("--episodes-other", type=int, default=200, help="on new ones; on new apps")
    parser.add_argument("--processes", type=int, default=Settings().processes)
    parser.add_argument("--no-control", action="store_true", help="leave out more stage 1")
    parser.add_argument("--quick", action="store_true", help="a trial of the script itself")
    parser.add_argument("--summarise", action="store_true", help="print what is there as Markdown")
    given = parser.parse_args()
    try:
        return _summarise(given.out) if given.summarise else _study(given)
    except SwarmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130


def _study(given: argparse.Namespace) -> int:
    settings = Settings(
        agent=given.agent,
        episodes_test=given.episodes_test,
        episodes_other=given.episodes_other,
        processes=given.processes,
    )
    if given.quick:
        settings = dataclasses.replace(
            settings, iterations=1, shared_iterations=1, episodes=8, shared_steps=4
        )
    check_learning(settings)
    from study.repeat import Study
    from study.variants import Variant

    with Screen() as screen:
        study = Study(given.out, agent_folder(settings), settings, screen)
        study.base()
        for seed in given.seeds:
            seconds = max(
                study.trained(seed, Variant(method, method, {"method": method}))
                for method in given.methods
            )
            if not given.no_control:
                study.more_stage_one(seed, seconds)
    return _summarise(given.out)


def _summarise(folder: Path) -> int:
    from study.summary import summarise

    print(summarise(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
