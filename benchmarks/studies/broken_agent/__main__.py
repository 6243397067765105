"""One broken agent of four is identified by credit alone; its edges and its vote are removed.

    python -m benchmarks.studies.broken_agent --out runs/broken  # whole screens
    python -m benchmarks.studies.broken_agent --out runs/broken --window-agent FOLDER
    python -m benchmarks.studies.broken_agent --out runs/broken --summarise

In each seed another agent is broken. Each seed has its own test episodes, which all arms of the
seed play. The broken agent is identified on separate tuning episodes, from the credit of a
scripted critic with errors. Finished seeds are not repeated. ``benchmarks.studies.windows`` trains
the window agent and saves it in its folder ``agent``. The phone is simulated.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings
from swarm_ui.storage.run_directory import write_atomic


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options that affect the results."""

    episodes: int
    tuning: int
    noise: float


@script
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--window-agent", type=Path, help="plays half windows of long screens")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--episodes", type=int, default=200, help="test episodes of each arm")
    parser.add_argument("--tuning", type=int, default=48, help="episodes to find the broken one")
    parser.add_argument("--noise", type=float, default=0.1, help="share of false verdicts")
    parser.add_argument("--kinds", nargs="+", default=["random", "wrong"])
    parser.add_argument("--summarise", action="store_true", help="print what is there as Markdown")
    given = parser.parse_args()
    check_learning(Settings())
    if not given.summarise:
        study(given)
    from benchmarks.studies.broken_agent.report import summary

    print(summary(given.out))
    return 0


def study(given: argparse.Namespace) -> None:
    """Run all parts that are not finished."""
    import torch

    from benchmarks.studies.broken_agent.arms import ARMS, KINDS, BrokenCase, ladder
    from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel

    unknown = set(given.kinds) - set(KINDS)
    if unknown:
        raise ConfigError(f"--kinds: expected {', '.join(KINDS)}, got {min(unknown)!r}")
    torch.set_num_threads(1)  # a second thread does not make a tiny network faster
    silence_transformers()
    options = Options(episodes=given.episodes, tuning=given.tuning, noise=given.noise)
    check_study(given.out / "options.json", options)
    agents = {"screen": BASE_AGENT}
    if given.window_agent is not None:
        agents = {"half": given.window_agent, **agents}
    display = ProgressDisplay()
    for sight, folder in agents.items():
        model = LocalModel.load(folder)
        for kind in given.kinds:
            for seed in given.seeds:
                path = given.out / f"{sight}-{kind}-{seed}.json"
                if path.exists():
                    continue
                case = BrokenCase(model=model, sight=sight, kind=kind, seed=seed, noise=given.noise)
                with display.bar(path.stem, len(ARMS) + 2) as bar:
                    cell = ladder(
                        case, tuning=given.tuning, episodes=given.episodes, progress=bar.update
                    )
                write_atomic(path, msgspec.json.encode(cell) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
