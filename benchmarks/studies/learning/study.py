"""Stage 2 over several seeds, and stage 1 for the same CPU time as a control.

A cell is a run directory. Finished parts of it are not repeated. Its ``cell.json`` records the
commit and the command that began it, and the settings that ``config.json`` does not have.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.studies.learning.arms import base_graph_arms, copies_vote, graph_arms
from benchmarks.studies.learning.cells import CELL_FILE, CellOrigin
from benchmarks.studies.learning.imitation import imitate
from benchmarks.studies.learning.kept import restored
from benchmarks.studies.learning.variants import FULL, Variant
from benchmarks.studies.struct_files import write_struct
from benchmarks.support.origin import origin
from demos.base_agent.recipes import BaseAgentConfig, make_base_agent
from demos.base_agent.stream import rehearsal_for
from demos.base_agent.training import Progress, Stage1Config
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.environments import phone
from swarm_ui.experiment.evaluation import Evaluator, Trial
from swarm_ui.experiment.progress import Bar, ProgressDisplay
from swarm_ui.experiment.settings import Settings, plain
from swarm_ui.experiment.teams import BASE, TRAINED, Arm, base_arms, trained_arms
from swarm_ui.experiment.training.stage2 import (
    TrainedTeam,
    TrainingEnvironment,
    fixed_graph,
    rollout_cost,
    team_config,
    train_team,
    unseen_graphs,
)
from swarm_ui.experiment.workers import phone_workers
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.optim.config import TeamConfig
from swarm_ui.report.results import Results
from swarm_ui.storage.run_directory import RunDirectory

BASE_CELL = "base"
UNTRAINED_CELL = "untrained"
_PROBE_STEPS = 150
_CONTROL_RATE = 1e-3
"""Peak learning rate of more stage 1: the agent is trained already."""
_CONTROL_ARMS = ("base-greedy", "base-vote")


class Study:
    """The cells of one folder."""

    def __init__(
        self,
        folder: Path,
        agent: Path,
        settings: Settings,
        display: ProgressDisplay,
        *,
        graphs: int = 3,
    ) -> None:
        """
        Args:
            folder: contains a folder for each cell.
            agent: folder of the base agent.
            settings: the settings of every cell, except seed and method.
            display: shows the progress.
            graphs: number of DAGs on which a team is tested. 0: teams are only tested without
                edges; a later study with the same folder adds the tests that are missing.
        """
        self.folder, self._agent, self._settings, self._display = folder, agent, settings, display
        self._graphs = graphs

    def base(self) -> None:
        """Play the base agent and its controls."""
        run, results = self._cell(BASE_CELL, self._settings)
        arms = [arm for arm in base_arms(self._settings) if arm.name != "base-team"]
        arms += base_graph_arms(self._settings, self._graphs)
        self._evaluate(run, results, arms, self._agent, None)

    def untrained(self) -> None:
        """The architecture of the base agent with random weights: the success by chance."""
        run, results = self._cell(UNTRAINED_CELL, self._settings)
        agent = run.path / "agent"
        if not agent.exists():
            base, part = LocalModel.load(self._agent), run.path / "agent.part"
            shutil.rmtree(part, ignore_errors=True)
            shape: Any = base.module.config
            LocalModel.untrained(
                base.tokenizer, width=shape.hidden_size, layers=shape.num_hidden_layers,
                heads=shape.num_attention_heads, seed=0,
            ).save(part)  # fmt: skip
            part.rename(agent)
        arms = [arm for arm in base_arms(self._settings) if arm.name == BASE]
        self._evaluate(run, results, arms, agent, None)

    def trained(self, seed: int, variant: Variant) -> float:
        """Train one run of stage 2; returns its CPU-seconds."""
        settings = variant.settings(self._settings, seed)
        run, results = self._cell(f"{variant.name}-{seed}", settings, variant)
        unknown = TrainedTeam((), fixed_graph(settings), "")  # for the names of the arms
        if restored(results, run.adapters / "agent_0", self._arms(variant, settings, unknown)):
            return results.training_cpu_seconds
        critic, model = phone.scripted_critic(settings), LocalModel.load(self._agent)
        environment = TrainingEnvironment(
            PhoneEnvironment,
            lambda count, *, seed: phone.training_jobs(settings, count, random.Random(seed)),
            critic if variant.critic else None,
            phone.CONCURRENCY,
            rehearse=rehearsal_for(model),
        )
        with self._display.bar(f"{run.path.name}: stage 2", settings.iterations) as bar:
            if variant.imitate:
                trained = self._imitated(settings, run, model, environment, bar)
            else:
                config = variant.config(team_config(settings, environment.concurrency))
                trained = asyncio.run(train_team(settings, run, model, environment, bar, config))
                results.rollouts = rollout_cost(run, trained.history)
                seconds = sum(m["cpu_seconds"] for m in trained.history)
                run.log({"kind": "training", "cpu_seconds": seconds})
        results.training_cpu_seconds = _noted(run, "training")
        self._evaluate(
            run, results, self._arms(variant, settings, trained), self._agent, run.adapters
        )
        return results.training_cpu_seconds

    def _arms(self, variant: Variant, settings: Settings, trained: TrainedTeam) -> list[Arm]:
        """The arms of a trained team: one of its agents, its vote, and the team on DAGs."""
        arms = {arm.name: arm for arm in trained_arms(settings, trained.edges, trained.edges_label)}
        found = [arms[TRAINED]]
        if variant.vote:
            alone = settings.agents == 1
            found.append(copies_vote(self._settings.agents) if alone else arms["trained-vote"])
        if variant.team and self._graphs:
            found += graph_arms(arms["trained-team"], settings, trained, self._graphs)
        return found

    def _imitated(
        self,
        settings: Settings,
        run: RunDirectory,
        model: LocalModel,
        environment: TrainingEnvironment,
        bar: Bar,
    ) -> TrainedTeam:
        """The control that is shown the solver's actions. It is repeated if it was interrupted."""
        if not any(run.adapters.glob("agent_*")):
            seconds = asyncio.run(imitate(settings, run, model, environment, bar.update))
            model.save_adapters(run.adapters)
            run.log({"kind": "training", "cpu_seconds": seconds})
        unseen = unseen_graphs(settings, {frozenset(fixed_graph(settings))}, 1)
        return TrainedTeam((), unseen[0], "unseen DAG")

    def more_stage_one(self, seed: int, variant: Variant, cpu_seconds: float) -> None:
        """The control of a variant: the base agent is trained further by stage 1, for the same
        CPU-seconds."""
        name = "stage1" if variant.name == FULL.name else f"stage1_{variant.name}"
        settings = dataclasses.replace(self._settings, seed=seed)
        run, results = self._cell(f"{name}-{seed}", settings)
        agent = run.path / "agent"
        arms = [arm for arm in base_arms(self._settings) if arm.name in _CONTROL_ARMS]
        arms = [_renamed(arm) for arm in arms]
        if restored(results, agent, arms):
            return
        if not agent.exists():
            part, spent = run.path / "agent.part", _Spent()
            self._stage_one(part, seed, _PROBE_STEPS, spent)
            steps = max(_PROBE_STEPS, round(cpu_seconds / spent.each))
            self._display.say(f"{run.path.name}: {steps} steps for {cpu_seconds:.0f} CPU-seconds")
            self._stage_one(part, seed, steps, spent)
            noted = {"steps": steps, "cpu_seconds": spent.last, "tokens": spent.tokens}
            run.log({"kind": "control", **noted})
            part.rename(agent)
        results.training_cpu_seconds = _noted(run, "control")
        self._evaluate(run, results, arms, agent, None)

    def _stage_one(self, folder: Path, seed: int, steps: int, spent: _Spent) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        stage1 = Stage1Config(steps=steps, learning_rate=_CONTROL_RATE, seed=1000 + seed)
        config = BaseAgentConfig(processes=1, seed=1000 + seed, stage1=stage1)
        make_base_agent(config, folder, start=self._agent, report=spent)

    def _cell(
        self, name: str, settings: Settings, variant: Variant | None = None
    ) -> tuple[RunDirectory, Results]:
        path = self.folder / name
        if (path / "config.json").exists():
            run = RunDirectory.open_existing(path)
        else:
            run = RunDirectory.create(path, name=name, config=plain(settings))
            begun = CellOrigin(
                origin=origin("python benchmarks/learning.py"),
                trainer={} if variant is None else _explicit(variant),
            )
            write_struct(path / CELL_FILE, begun)
        results = Results.load(path)
        results.labels = (phone.label(phone.scripted_critic(settings).name),)
        results.splits = dict(phone.SPLITS)
        return run, results

    def _evaluate(
        self,
        run: RunDirectory,
        results: Results,
        arms: Sequence[Arm],
        agent: Path,
        adapters: Path | None,
    ) -> None:
        where = None if adapters is None else str(adapters)
        trials = [
            Trial(split, arm, tuple(jobs), where)
            for split, jobs in phone.test_jobs(self._settings).items()
            for arm in arms
        ]
        evaluation, processes = Evaluator(run, results, self._display), self._settings.processes

        async def play() -> None:
            async with phone_workers(processes) as workers:
                label = f"{run.path.name}: evaluation"
                await evaluation.play_in_workers(trials, str(agent), workers, label=label)

        if evaluation.left(trials):
            asyncio.run(play())
        results.arms.sort(key=lambda arm: list(phone.SPLITS).index(arm.split))
        results.save(run.path)


class _Spent:
    """The CPU time that stage 1 reports."""

    def __init__(self) -> None:
        self.last = 0.0
        self.tokens = 0
        self._first: tuple[int, float] | None = None
        self.each = 0.0

    def __call__(self, progress: Progress) -> None:
        if progress.step < 100:
            self._first = (progress.step, progress.cpu_seconds)
        elif self._first is not None:
            step, seconds = self._first
            self.each = (progress.cpu_seconds - seconds) / (progress.step - step)
        self.last, self.tokens = progress.cpu_seconds, progress.tokens


def _noted(run: RunDirectory, kind: str) -> float:
    """CPU-seconds of the last line of a kind in the run's metrics."""
    return float(str([m for m in run.metrics() if m.get("kind") == kind][-1]["cpu_seconds"]))


def _explicit(variant: Variant) -> dict[str, object]:
    """The settings of the trainer that the variant sets itself."""
    default, own = TeamConfig(), variant.config(TeamConfig())
    names = [field.name for field in dataclasses.fields(TeamConfig)]
    changed = {n: getattr(own, n) for n in names if getattr(own, n) != getattr(default, n)}
    return {"critic": variant.critic, **changed}


def _renamed(arm: Arm) -> Arm:
    """A base arm renamed for the control."""
    return dataclasses.replace(
        arm,
        name=arm.name.replace("base", "stage1"),
        label=arm.label.replace("base", "more stage 1"),
    )
