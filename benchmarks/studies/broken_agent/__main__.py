"""One broken agent of four is identified by credit alone; its edges and its vote are removed.

    python -m benchmarks.studies.broken_agent --out runs/broken  # whole screens
    python -m benchmarks.studies.broken_agent --out runs/broken --window-agent FOLDER
    python -m benchmarks.studies.broken_agent --out runs/broken --summarise --record
    python -m benchmarks.studies.broken_agent --recorded
    python -m benchmarks.studies.broken_agent --quick

In each seed another agent is broken. Each seed has its own test episodes, which all arms of the
seed play. The broken agent is identified on separate tuning episodes, from the credit of a
scripted critic with errors. Finished seeds are not repeated. ``benchmarks.studies.windows`` trains
the window agent and saves it in its folder ``agent``. The record holds the cells; ``--restore``
writes those that the folder lacks. The phone is simulated. The last line is JSON: ``rows`` of
``{name, sight, kind, success, low, high, seeds, …}``, ``contrasts`` and ``searches``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.studies.broken_agent.plan import QUICK, Plan
from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings
from swarm_ui.storage.run_directory import write_atomic

NAME = "broken_agent"
FILES = ("settings.json", "cells/*.json")
"""What the record holds of the study's folder."""


def _arguments() -> argparse.Namespace:
    flags = ("quick", "summarise", "record", "recorded", "restore")
    parser = study_options(__doc__, *flags)
    parser.add_argument("--window-agent", type=Path, help="also plays half windows of long screens")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--kinds", nargs="+", default=["random", "wrong"])
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.broken_agent.report import Study, markdown, study_of

    seeds = given.seeds[:1] if given.quick else given.seeds
    study = recorded_study(
        given, NAME, Study, settings=Plan(), files=FILES,
        run=lambda folder: _run(folder, given, seeds),
        read=study_of,
    )  # fmt: skip
    print(markdown(study))
    print(json.dumps({name: msgspec.to_builtins(getattr(study, name))
                      for name in ("rows", "contrasts", "searches")}))  # fmt: skip
    return 0


def _run(folder: Path, given: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Make every cell that does not exist yet."""
    check_learning(Settings())
    import torch

    from benchmarks.studies.broken_agent.arms import ARMS, KINDS, BrokenCase, ladder
    from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel

    unknown = set(given.kinds) - set(KINDS)
    if unknown:
        raise ConfigError(f"--kinds: expected {', '.join(KINDS)}, got {min(unknown)!r}")
    torch.set_num_threads(1)  # a second thread does not make a tiny network faster
    silence_transformers()
    plan = QUICK if given.quick else Plan()
    check_study(folder / "settings.json", plan)
    agents = {"screen": BASE_AGENT}
    if given.window_agent is not None:
        agents["half"] = given.window_agent
    display = ProgressDisplay()
    for sight, agent in agents.items():
        model = LocalModel.load(agent)
        for kind in given.kinds:
            for seed in seeds:
                path = folder / "cells" / f"{sight}-{kind}-{seed}.json"
                if path.exists():
                    continue
                case = BrokenCase(model=model, sight=sight, kind=kind, seed=seed, noise=plan.noise)
                with display.bar(path.stem, len(ARMS) + 2) as bar:
                    cell = ladder(
                        case, tuning=plan.tuning, episodes=plan.episodes, progress=bar.update
                    )
                write_atomic(path, msgspec.json.encode(cell) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
