"""Comparison of edges for four agents that each see a window of a long screen.

    python -m benchmarks.studies.windows --out runs/windows                 # trains the agent too
    python -m benchmarks.studies.windows --out runs/windows --agent FOLDER  # a trained one
    python -m benchmarks.studies.windows --out runs/windows --summarise
    python -m benchmarks.studies.windows --out runs/windows --agent-seeds 1 2 3  # other agents
    python -m benchmarks.studies.windows --out runs/windows --train-teams   # trains teams
    python -m benchmarks.studies.windows --out runs/windows --record
    python -m benchmarks.studies.windows --out runs/more --restore --train-teams --teams-seeds 0 1 5
    python -m benchmarks.studies.windows --recorded

The phone is simulated, and its long screens are built so that no single agent sees enough. Finished
parts are not repeated, so the same command continues after an interruption. ``--agent-seeds``
plays the main policies again with agents that were trained with these seeds, and nothing else.
``--train-teams`` begins with an agent that was trained without edges, and trains teams of it with
several kinds of edges and of credit. The critic is scripted. ``--record`` keeps what is finished,
with the results of which the tables are made, but no weights. ``--restore`` writes those results
that the folder lacks, and the study goes on from there; with ``--summarise`` or ``--record`` it
runs nothing. The last line of ``--recorded`` is JSON: the rows of the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from benchmarks.studies.options import parsed, study_options
from benchmarks.studies.restore import found_files, packed_files, restore
from benchmarks.studies.struct_files import read_struct, write_struct
from benchmarks.support.origin import origin
from benchmarks.support.records import read_record, write_record
from swarm_ui.experiment.demo.demo_run import check_learning
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.progress import Bar, ProgressDisplay
from swarm_ui.experiment.script_runner import check_study, script
from swarm_ui.experiment.settings import Settings
from swarm_ui.files import write_atomic

if TYPE_CHECKING:
    from benchmarks.studies.windows.agent import WindowAgentConfig
    from benchmarks.studies.windows.arms import Split, WindowArm
    from benchmarks.studies.windows.edges import Method
    from benchmarks.studies.windows.fixed import Fixed
    from benchmarks.studies.windows.record import Record
    from benchmarks.studies.windows.replication import FurtherAgents
    from benchmarks.studies.windows.stage2 import Stage2
    from demos.base_agent.training import Progress
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
    from swarm_ui.rollout import Job

T = TypeVar("T", bound=msgspec.Struct)
NAME = "windows"
FILES = (
    "options.json", "forms/*.json", "random/*.json", "new/*.json", "all/*.json",
    "edges/*.json", "agents/*/forms/*.json", "agents/*/edges/*.json",
    "stage2/plan.json", "stage2/cells/*/cell.json", "stage2/tests/*.json",
)  # fmt: skip
"""What the record holds of the study's folder, with how the window agents were trained."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options that affect the results."""

    episodes: int
    """Test episodes on forms, for each arm."""
    episodes_random: int
    """Number of these episodes, the first ones, that each random graph plays."""
    episodes_all: int
    """Test episodes on all templates, for each control."""
    budget: int
    """Episodes of each run of edge learning."""
    seeds: tuple[int, ...]
    steps: int
    """Training steps of the window agent, if this run trains it."""
    agent: str
    """Folder of the agent; empty: trained here."""
    episodes_new: int = 100
    """Test episodes on new forms, for each control and learned graph."""


def _arguments() -> argparse.Namespace:
    parser = study_options(__doc__, "summarise", "record", "recorded", "restore")
    parser.add_argument("--agent", type=Path, help="window agent (default: train one)")
    parser.add_argument("--episodes", type=int, default=200, help="of the test on forms, each arm")
    parser.add_argument("--episodes-random", type=int, default=100, help="each random graph")
    parser.add_argument("--episodes-all", type=int, default=120, help="on all templates, controls")
    parser.add_argument("--episodes-new", type=int, default=100, help="on new forms, each arm")
    parser.add_argument("--budget", type=int, default=480, help="episodes of edge learning")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of edge learning")
    parser.add_argument("--steps", type=int, default=4_000, help="of training the agent")
    parser.add_argument("--agent-seeds", type=int, nargs="+", default=[],
                        help="train other agents with these seeds, and play with them")  # fmt: skip
    parser.add_argument("--train-teams", action="store_true", help="train and test teams")
    parser.add_argument("--teams-steps", type=int, default=1_500, help="of its agent")
    parser.add_argument("--teams-seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parsed(parser)
    if given.out is None and not given.recorded:
        parser.error("--out is needed, except with --recorded")
    if 0 in given.agent_seeds:
        parser.error("--agent-seeds: 0 is the seed of the first agent; give others")
    return given


@script
def main() -> int:
    given = _arguments()
    if given.recorded:
        from benchmarks.studies.windows.record import Record

        _show(read_record(NAME, Record))
        return 0
    chosen = {name: getattr(given, name) for name in Options.__struct_fields__}
    agent = "" if given.agent is None else str(given.agent)
    options = Options(**{**chosen, "seeds": tuple(given.seeds), "agent": agent})
    check_learning(Settings())
    study = Study(given.out, options)
    if given.restore:
        _restore(given.out, options)
    if given.agent_seeds:
        study.run_further(given.agent_seeds)
    if given.train_teams or given.record:
        stage2 = _stage2(given)
        if given.train_teams:
            _train_teams(stage2, given)
        if given.record:
            record = _record(stage2, study)
            files = found_files(given.out, FILES) | stage2.notes() | study.notes()
            write_record(NAME, record, packed_files(files))
            _show(record)
        return 0
    if not given.summarise and not given.agent_seeds:
        study.run()
    print(study.summary())
    return 0


def _show(record: Record) -> None:
    """Print the tables, and the rows as one line of JSON."""
    from benchmarks.studies.windows.record import all_rows, markdown

    print(markdown(record))
    print(json.dumps(msgspec.to_builtins(all_rows(record))))


def _restore(out: Path, options: Options) -> None:
    from benchmarks.studies.windows.cells import Plan

    restore(NAME, out, {"options.json": options, "stage2/plan.json": Plan()})


def _stage2(given: argparse.Namespace) -> Stage2:
    """The study of stage 2."""
    from benchmarks.studies.windows.cells import Plan
    from benchmarks.studies.windows.stage2 import Stage2

    agent = given.out / "agent-without-edges"
    return Stage2(given.out / "stage2", agent, Plan(), tuple(given.teams_seeds))


def _train_teams(stage2: Stage2, given: argparse.Namespace) -> None:
    """Run stage 2; its window agent is trained if it is not there."""
    import torch

    from benchmarks.studies.windows.agent import WindowAgentConfig

    torch.set_num_threads(1)
    silence_transformers()
    if not stage2.agent.exists():
        _train_agent(WindowAgentConfig.without_edges(given.teams_steps), stage2.agent)
    stage2.run(partial(print, file=sys.stderr, flush=True))


def _record(stage2: Stage2, study: Study) -> Record:
    from benchmarks.studies.windows.record import make_record

    made = origin("python -m benchmarks.studies.windows")
    return make_record(
        made, stage2.plan, stage2.made(), stage2.cells(), stage2.tests(), study.fixed(),
        study.further().found(),
    )  # fmt: skip


def _train_agent(config: WindowAgentConfig, folder: Path) -> None:
    from benchmarks.studies.windows.agent import make_window_agent

    steps = config.stage1.steps
    with ProgressDisplay().bar("training the window agent", steps) as bar:

        def report(at: Progress) -> None:
            bar.update(at.step, f"loss {at.loss:.3f}")

        part = folder.with_name(f"{folder.name}.part")
        make_window_agent(config, part, report=report)
    part.rename(folder)


class Study:
    """A folder with one file for each result; runs the missing parts."""

    def __init__(self, folder: Path, options: Options) -> None:
        self._folder, self._options = folder, options

    def run(self) -> None:
        """Run all parts that are not finished."""
        import torch

        from benchmarks.studies.windows.arms import control_arms, random_arms, test_jobs
        from benchmarks.studies.windows.edges import METHODS
        from benchmarks.studies.windows.stage2 import agent_made
        from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

        torch.set_num_threads(1)  # a second thread does not make a tiny network faster
        silence_transformers()
        check_study(self._folder / "options.json", self._options)
        display = ProgressDisplay()
        agent = self._agent()
        agent_made(agent, self._note())  # that of the results that are there
        model, options = LocalModel.load(agent), self._options
        measure = partial(self._measure, display, model)
        jobs = test_jobs("forms", options.episodes)
        measure(control_arms(), jobs, "forms")
        for method in METHODS:
            for seed in options.seeds:
                self._learn(display, model, method, seed)
            measure(self._learned_arms(), jobs, "forms")
            if method == "thompson":
                measure(random_arms(), jobs[: options.episodes_random], "random")
                measure(control_arms(), test_jobs("all", options.episodes_all), "all")
        new = test_jobs("new", options.episodes_new)
        measure([*control_arms(), *self._learned_arms()], new, "new")
        write_atomic(self._folder / "summary.md", self.summary())

    def summary(self) -> str:
        """All tables as Markdown."""
        from benchmarks.studies.windows.fixed import fixed_tables
        from benchmarks.studies.windows.replication import replication_tables

        fixed, further = self.fixed(), self.further().found()
        parts = [] if fixed is None else [fixed_tables(fixed)]
        parts += [] if further is None else [replication_tables(further)]
        return "\n\n".join(parts)

    def further(self) -> FurtherAgents:
        """The agents that were trained with other seeds."""
        from benchmarks.studies.windows.replication import FurtherAgents

        options = self._options
        return FurtherAgents(
            self._folder / "agents", steps=options.steps, episodes=options.episodes,
            budget=options.budget,
        )  # fmt: skip

    def run_further(self, seeds: Sequence[int]) -> None:
        """Train agents with these seeds, and play the main policies with them."""
        import torch

        torch.set_num_threads(1)
        silence_transformers()
        check_study(self._folder / "options.json", self._options)
        say = partial(print, file=sys.stderr, flush=True)
        self.further().run(seeds, _train_agent, say)

    def fixed(self) -> Fixed | None:
        """The figures of all that was played; ``None``: nothing was."""
        from benchmarks.studies.windows.arms import Played, test_jobs
        from benchmarks.studies.windows.edges import LearnedEdges
        from benchmarks.studies.windows.fixed import make_fixed
        from benchmarks.studies.windows.stage2 import agent_made

        kinds = ("forms", "random", "new", "all")
        played = {kind: {p.name: p for p in self._all(kind, Played)} for kind in kinds}
        if not played["forms"]:
            return None
        options, made = self._options, agent_made(self._agent_folder(), self._note())
        jobs: dict[Split, list[Job]] = {
            "forms": test_jobs("forms", options.episodes),
            "new": test_jobs("new", options.episodes_new),
            "all": test_jobs("all", options.episodes_all),
        }
        return make_fixed(made, played, self._all("edges", LearnedEdges), jobs)

    def notes(self) -> dict[str, Any]:
        """How the agents were trained, as files of the record; empty: this part was not run."""
        from benchmarks.studies.windows.stage2 import agent_made

        if not (self._folder / "options.json").exists():
            return {}
        made = {self._note().name: agent_made(self._agent_folder(), self._note())}
        return {k: msgspec.to_builtins(v) for k, v in (made | self.further().notes()).items()}

    def _note(self) -> Path:
        return self._folder / "agent.json"

    def _agent_folder(self) -> Path:
        return Path(self._options.agent) if self._options.agent else self._folder / "agent"

    def _agent(self) -> Path:
        """The folder of the agent, which is trained if it is missing."""
        folder = self._agent_folder()
        if not self._options.agent and not folder.exists():
            from benchmarks.studies.windows.agent import WindowAgentConfig

            _train_agent(WindowAgentConfig.of(self._options.steps), folder)
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
                write_struct(self._path(kind, arm.name), played)

    def _learn(
        self, display: ProgressDisplay, model: LocalModel, method: Method, seed: int
    ) -> None:
        from benchmarks.studies.windows.edges import learn, learned_name

        path = self._path("edges", learned_name(method, seed))
        if path.exists():
            return
        budget = self._options.budget
        with display.bar(f"learning edges: {method}, seed {seed}", budget) as bar:
            write_struct(path, learn(model, method, seed, budget=budget, progress=bar.update))

    def _learned_arms(self) -> list[WindowArm]:
        from benchmarks.studies.windows.arms import WindowArm
        from benchmarks.studies.windows.edges import METHODS, LearnedEdges, learned_name

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
        return [read_struct(path, of) for path in sorted((self._folder / kind).glob("*.json"))]


def _within(bar: Bar, number: int, label: str) -> Callable[[int, int, object], None]:
    def update(done: int, total: int, _: object) -> None:
        bar.update(number + done / total, label)

    return update


if __name__ == "__main__":
    sys.exit(main())
