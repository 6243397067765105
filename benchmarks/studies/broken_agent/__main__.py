"""One broken agent of four is identified by credit alone; its edges and its vote are removed.

    python -m benchmarks.studies.broken_agent --out runs/broken  # whole screens
    python -m benchmarks.studies.broken_agent --out runs/broken --half-windows
    python -m benchmarks.studies.broken_agent --out runs/broken --summarise --record
    python -m benchmarks.studies.broken_agent --recorded
    python -m benchmarks.studies.broken_agent --quick

In each seed a different agent is broken. Each seed has its own test episodes, which all arms of the
seed play. The broken agent is identified on separate tuning episodes, from the credit of a
scripted critic with errors. Finished seeds are not repeated. ``--half-windows`` adds teams whose
agents see half of a long screen each; it trains their window agent in the study's folder, unless
``--window-agent`` names one, such as the folder ``agent`` of ``benchmarks.studies.windows``. The
record holds the cells; ``--restore`` writes those that the folder lacks. The phone is simulated.
The last line is JSON: ``rows`` of ``{name, sight, kind, success, low, high, seeds, …}``,
``contrasts`` and ``searches``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.studies.broken_agent.plan import QUICK, Plan
from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.recorded_study import recorded_study, show_study
from benchmarks.studies.struct_files import write_struct
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings

NAME = "broken_agent"


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__)
    parser.add_argument("--half-windows", action="store_true", help="also on long screens")
    parser.add_argument("--window-agent", type=Path, help="plays them (default: train one)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--kinds", nargs="+", default=["random", "wrong"])
    return parsed(parser, folder=True)


@script
def main() -> int:
    given = _arguments()
    from benchmarks.studies.broken_agent.report import Study, markdown, study_of

    seeds = given.seeds[:1] if given.quick else given.seeds
    study = recorded_study(
        given, NAME, Study, settings=Plan(),
        run=lambda folder: _run(folder, given, seeds),
        read=study_of,
    )  # fmt: skip
    show_study(study, markdown(study), "rows", "contrasts", "searches")
    return 0


def _run(folder: Path, given: argparse.Namespace, seeds: Sequence[int]) -> None:
    """Make every cell that does not exist yet."""
    check_learning(Settings())
    import torch

    from benchmarks.studies.broken_agent.arms import ARMS, KINDS, BrokenCase, Sight, ladder
    from benchmarks.studies.different_bases.agents import digest
    from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel

    unknown = set(given.kinds) - set(KINDS)
    if unknown:
        raise ConfigError(f"--kinds: expected {', '.join(KINDS)}, got {min(unknown)!r}")
    torch.set_num_threads(1)  # a second thread does not make a tiny network faster
    silence_transformers()
    plan = QUICK if given.quick else Plan()
    check_study(folder / "settings.json", plan)
    agents: dict[Sight, Path] = {"screen": BASE_AGENT}
    if given.half_windows:
        agents["half"] = given.window_agent or _window_agent(folder / "window_agent", plan)
    display = ProgressDisplay()
    for sight, agent in agents.items():
        model, weights = LocalModel.load(agent), digest(agent)
        for kind in given.kinds:
            for seed in seeds:
                path = folder / "cells" / f"{sight}-{kind}-{seed}.json"
                if path.exists():
                    continue
                case = BrokenCase(
                    model=model, weights=weights, sight=sight, kind=kind, seed=seed,
                    noise=plan.noise,
                )  # fmt: skip
                with display.bar(path.stem, len(ARMS) + 2) as bar:
                    cell = ladder(
                        case, tuning=plan.tuning, episodes=plan.episodes, progress=bar.update
                    )
                write_struct(path, cell)


def _window_agent(folder: Path, plan: Plan) -> Path:
    """The folder of the window agent, which is trained if it is missing."""
    from benchmarks.studies.windows.agent import WindowAgentConfig, make_window_agent

    if not (folder / "made.json").exists():
        config = WindowAgentConfig.of(plan.window_steps)
        with ProgressDisplay().bar("window agent", plan.window_steps) as bar:
            make_window_agent(config, folder, report=lambda at: bar.update(at.step))
    return folder


if __name__ == "__main__":
    sys.exit(main())
