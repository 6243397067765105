"""Comparison of edges for four agents that each see a window of a long screen.

    python -m benchmarks.studies.windows --out runs/windows                 # trains the agent too
    python -m benchmarks.studies.windows --out runs/windows --agent FOLDER  # a trained one
    python -m benchmarks.studies.windows --out runs/windows --summarise

The phone is simulated, and its long screens are built so that no single agent sees enough. Finished
parts are not repeated, so the same command continues after an interruption.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.progress import Bar, ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings
from swarm_ui.storage.run_directory import write_atomic

if TYPE_CHECKING:
    from benchmarks.studies.windows.arms import WindowArm
    from benchmarks.studies.windows.edges import Method
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
    from swarm_ui.rollout.episodes import Job

T = TypeVar("T", bound=msgspec.Struct)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options that affect the results."""

    episodes: int
    """Test episodes on forms, for each arm."""
    episodes_random: int
    """Number of these episodes, the first ones, that each random graph plays."""
    episodes_all: int
    """Test episodes on all templates, for each control."""
    tuning: int
    """Tuning episodes of each random graph."""
    budget: int
    """Episodes of each run of edge learning."""
    seeds: tuple[int, ...]
    steps: int
    """Steps of training the agent, if it is trained here."""
    agent: str
    """Folder of the agent; empty: trained here."""


@script
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--agent", type=Path, help="window agent (default: train one)")
    parser.add_argument("--episodes", type=int, default=400, help="of the test on forms, each arm")
    parser.add_argument("--episodes-random", type=int, default=400, help="each random graph")
    parser.add_argument("--episodes-all", type=int, default=200, help="on all templates, controls")
    parser.add_argument("--tuning", type=int, default=40, help="to choose a random graph, each")
    parser.add_argument("--budget", type=int, default=800, help="episodes of edge learning")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4], help="of edge learning"
    )
    parser.add_argument("--steps", type=int, default=6_000, help="of training the agent")
    parser.add_argument("--summarise", action="store_true", help="print what is there as Markdown")
    given = parser.parse_args()
    options = Options(
        episodes=given.episodes,
        episodes_random=given.episodes_random,
        episodes_all=given.episodes_all,
        tuning=given.tuning,
        budget=given.budget,
        seeds=tuple(given.seeds),
        steps=given.steps,
        agent="" if given.agent is None else str(given.agent),
    )
    check_learning(Settings())
    study = Study(given.out, options)
    if not given.summarise:
        study.run()
    print(study.summary())
    return 0


class Study:
    """A folder with one file for each result; runs the missing parts."""

    def __init__(self, folder: Path, options: Options) -> None:
        self._folder, self._options = folder, options

    def run(self) -> None:
        """Run all parts that are not finished."""
        import torch

        from benchmarks.studies.windows.arms import control_arms, test_jobs
        from benchmarks.studies.windows.edges import METHODS
        from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

        torch.set_num_threads(1)  # a second thread does not make a tiny network faster
        silence_transformers()
        check_study(self._folder / "options.json", self._options)
        display = ProgressDisplay()
        model = LocalModel.load(self._agent(display))
        jobs = test_jobs("forms", self._options.episodes)
        self._measure(display, model, control_arms(), jobs, "forms")
        for method in METHODS:
            for seed in self._options.seeds:
                self._learn(display, model, method, seed)
            self._measure(display, model, self._learned_arms(), jobs, "forms")
            if method == "thompson":
                self._others(display, model, jobs)
        write_atomic(self._folder / "summary.md", self.summary())

    def _others(self, display: ProgressDisplay, model: LocalModel, jobs: Sequence[Job]) -> None:
        """Random graphs, and the controls on all templates."""
        from benchmarks.studies.windows.arms import (
            control_arms,
            random_arms,
            test_jobs,
            tuning_jobs,
        )

        fewer = jobs[: self._options.episodes_random]
        self._measure(display, model, random_arms(), fewer, "random")
        tuning = tuning_jobs(self._options.tuning, 0)
        self._measure(display, model, random_arms(), tuning, "tuning")
        every = test_jobs("all", self._options.episodes_all)
        self._measure(display, model, control_arms(), every, "all")

    def summary(self) -> str:
        """All tables as Markdown."""
        from benchmarks.studies.windows.arms import Played, test_jobs
        from benchmarks.studies.windows.edges import LearnedEdges
        from benchmarks.studies.windows.report import summary

        kinds = ("forms", "random", "tuning", "all")
        played = {kind: {p.name: p for p in self._all(kind, Played)} for kind in kinds}
        jobs = test_jobs("all", self._options.episodes_all)
        return summary(played, self._all("edges", LearnedEdges), jobs)

    def _agent(self, display: ProgressDisplay) -> Path:
        if self._options.agent:
            return Path(self._options.agent)
        folder = self._folder / "agent"
        if not folder.exists():
            from benchmarks.studies.windows.agent import WindowAgentConfig, make_window_agent
            from swarm_ui.optim.stage1.supervised import Progress

            config = WindowAgentConfig.of(self._options.steps)
            with display.bar("training the window agent", self._options.steps) as bar:

                def report(at: Progress) -> None:
                    bar.update(at.step, f"loss {at.loss:.3f}")

                part = self._folder / "agent.part"
                make_window_agent(config, part, report=report)
            part.rename(folder)
        return folder

    def _measure(
        self,
        display: ProgressDisplay,
        model: LocalModel,
        arms: Sequence[WindowArm],
        jobs: Sequence[Job],
        kind: str,
    ) -> None:
        from benchmarks.studies.windows.arms import measure

        left = [arm for arm in arms if not self._path(kind, arm.name).exists()]
        if not left:
            return
        with display.bar(f"{kind}: {len(left)} arms", len(left)) as bar:
            for number, arm in enumerate(left):
                played = measure(model, arm, jobs, _within(bar, number, arm.label))
                _save(self._path(kind, arm.name), played)

    def _learn(
        self, display: ProgressDisplay, model: LocalModel, method: Method, seed: int
    ) -> None:
        from benchmarks.studies.windows.edges import learn
        from benchmarks.studies.windows.report import learned_name

        path = self._path("edges", learned_name(method, seed))
        if path.exists():
            return
        budget = self._options.budget
        with display.bar(f"learning edges: {method}, seed {seed}", budget) as bar:
            _save(path, learn(model, method, seed, budget=budget, progress=bar.update))

    def _learned_arms(self) -> list[WindowArm]:
        from benchmarks.studies.windows.arms import WindowArm
        from benchmarks.studies.windows.edges import METHODS, LearnedEdges
        from benchmarks.studies.windows.report import learned_name

        return [
            WindowArm(
                name=learned_name(one.method, one.seed),
                label=f"learned, {METHODS[one.method]}, seed {one.seed}",
                edges=one.edges,
            )
            for one in self._all("edges", LearnedEdges)
        ]

    def _path(self, kind: str, name: str) -> Path:
        return self._folder / kind / f"{name}.json"

    def _all(self, kind: str, of: type[T]) -> list[T]:
        return [_load(path, of) for path in sorted((self._folder / kind).glob("*.json"))]


def _within(bar: Bar, number: int, label: str) -> Callable[[int, int, object], None]:
    def update(done: int, total: int, _: object) -> None:
        bar.update(number + done / total, label)

    return update


def _save(path: Path, record: msgspec.Struct) -> None:
    write_atomic(path, msgspec.json.format(msgspec.json.encode(record), indent=0) + b"\n")


def _load(path: Path, of: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=of)
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"'{path}' is not a file of this script: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
