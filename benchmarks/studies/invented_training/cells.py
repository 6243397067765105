"""Cells of the study: training of one arm with one seed, and its test."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchmarks.studies.invented_training.plan import (
    BASE,
    DEVICES_APART,
    GENERAL,
    SPLITS,
    Arm,
    Plan,
    blind_jobs,
    design_of,
    device_tasks,
    held_out_jobs,
    make_environment,
    training_jobs,
)
from benchmarks.studies.struct_files import read_struct
from benchmarks.support.origin import commit
from demos.base_agent.recipes import (
    BaseAgentConfig,
    more_stage1,
    pool,
    shipped_training,
    solver_steps,
)
from demos.base_agent.screens import ActionSample
from demos.base_agent.stream import Mix, Rehearsal
from demos.base_agent.training import Stage1Config
from swarm_ui.environments.phone import TRAIN_SEEDS, draw_jobs, tasks
from swarm_ui.experiment.environments import phone
from swarm_ui.experiment.teams import base_arms, rollout_arm, trained_arms
from swarm_ui.experiment.training.stage2 import team_config
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import GENERAL_AGENT, LocalModel
from swarm_ui.nodes.models.tiny_agent.shipped_agents import SHIPPED_AGENTS
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.adversary import ScriptedAdversary, ScriptedTeacher
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.optim.update import rehearsal
from swarm_ui.rollout import Job, rollout_many
from swarm_ui.stats import Outcome, outcomes
from swarm_ui.trace.records import Episode

_PROBE_STEPS = 40
_CONTROL = Mix(questions=0.0, pages=0.31, devices=0.09, demonstrations=0.6)
"""Settings of the control "more stage 1": it has as many samples on invented screens as stage 2
rehearses; all others are demonstrations."""
Tell = Callable[[float, str], None]


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One trained team, or the base agent, and its outcomes."""

    arm: str
    seed: int
    commit: str
    steps: int
    """Optimiser steps."""
    samples: int
    """Pairs of all updates, rehearsal not counted, or samples of more stage 1."""
    calls: int
    """Calls of agents in training."""
    training_seconds: float
    """CPU time."""
    rollouts: tuple[float | None, ...] = ()
    """Success of each iteration's rollouts, which are guided."""
    outcomes: dict[str, list[Outcome]] = {}
    """By split."""


class Cells:
    """The cells in one folder. A finished one is not repeated."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self._arms = design_of(plan).by_name
        self._start = SHIPPED_AGENTS[plan.start]

    def path(self, arm: str, seed: int) -> Path:
        return self.folder / "cells" / f"{arm}-{seed}.json"

    def agent(self, arm: str, seed: int) -> Path:
        """The trained adapters, or the agent of more stage 1."""
        return self.folder / "agents" / f"{arm}-{seed}"

    def blind_path(self) -> Path:
        """Outcomes of the blind set, by arm and seed. It is written once."""
        return self.folder / "blind.json"

    def load(self, arm: str, seed: int) -> Cell | None:
        """The finished cell of this arm and seed, or ``None`` if it is not finished."""
        path = self.path(arm, seed)
        return read_struct(path, Cell) if path.exists() else None

    def base(self) -> Cell:
        """The untrained team."""
        return Cell(
            arm=BASE, seed=0, commit=commit(), steps=0, samples=0, calls=0, training_seconds=0.0,
            outcomes=self.test(BASE, 0, held_out_jobs(self.plan)),
        )  # fmt: skip

    def general(self) -> Cell:
        """The general agent of this package; its training is that of the file."""
        done = shipped_training()
        return Cell(
            arm=GENERAL, seed=0, commit=commit(), steps=done.steps, samples=done.samples, calls=0,
            training_seconds=done.cpu_seconds,
            outcomes=self.test(GENERAL, 0, held_out_jobs(self.plan)),
        )  # fmt: skip

    def trained(self, name: str, seed: int, tell: Tell) -> Cell:
        """Train one arm and test it."""
        arm = self._arms[name]
        cell = self._more_stage1(arm, seed) if arm.stage1_of else self._stage2(arm, seed, tell)
        outcomes = self.test(name, seed, held_out_jobs(self.plan))
        return msgspec.structs.replace(cell, outcomes=outcomes)

    def blind(self, name: str, seed: int) -> dict[str, list[Outcome]]:
        """Outcomes on the blind set."""
        return self.test(name, seed, blind_jobs(self.plan))

    def test(
        self, name: str, seed: int, jobs: dict[str, Sequence[Job]]
    ) -> dict[str, list[Outcome]]:
        """Outcomes of the vote of four agents with shuffled views, by split."""
        settings, folder = self.plan.settings(seed), self.agent(name, seed)
        arms = {arm.name: arm for arm in base_arms(settings)}
        voters = arms["base-vote"]
        if name == BASE:
            model = LocalModel.load(self._start)
        elif name == GENERAL:
            model = LocalModel.load(GENERAL_AGENT)
        elif self._arms[name].stage1_of:
            model = LocalModel.load(folder)
        else:
            model = LocalModel.load(self._start)
            model.load_adapters(folder)
            voters = {arm.name: arm for arm in trained_arms(settings, [], "")}["trained-vote"]
        found = {}
        for split, chosen in jobs.items():
            played = rollout_many(
                make_environment, voters.policy(model), chosen, concurrency=phone.CONCURRENCY
            )
            found[split] = outcomes(asyncio.run(played), seed)
        return found

    def _stage2(self, arm: Arm, seed: int, tell: Tell) -> Cell:
        settings, calls, own = self.plan.settings(seed), 0, seed
        solver = ScriptedCritic(
            make_environment, flips=settings.critic_noise, seed=derive(seed, "critic")
        )
        model = LocalModel.load(self._start)

        def count(iteration: int, episodes: Sequence[Episode]) -> None:
            nonlocal calls
            calls += sum(len(step.trace.calls) for e in episodes for step in e.steps)

        trainer = TeamTrainer(
            rollout_arm(settings, ()).graph(model),
            make_environment,
            lambda count, *, seed: training_jobs(arm, own, count, random.Random(seed)),
            config=dataclasses.replace(
                team_config(settings, phone.CONCURRENCY),
                rank=self.plan.rank,
            ),
            critic=solver if arm.critic else None,
            judge=solver,
            adversary=ScriptedAdversary(),
            teacher=ScriptedTeacher(make_environment) if arm.teacher else None,
        )
        trainer.rehearse = rehearsal(Rehearsal(KNOWN_WORDS), settings.rehearsal)
        trainer.on_episodes = count
        trainer.on_progress = lambda iteration, what, done, total: tell(iteration, what)
        began = time.process_time()
        history = asyncio.run(trainer.run()).history
        spent = time.process_time() - began
        model.save_adapters(_empty(self.agent(arm.name, seed)))
        return Cell(
            arm=arm.name,
            seed=seed,
            commit=commit(),
            steps=sum(at["steps"] for at in history),
            samples=sum(at["pairs"] for at in history),
            calls=calls,
            training_seconds=spent,
            rollouts=tuple(at["success"] for at in history),
        )

    def _more_stage1(self, arm: Arm, seed: int) -> Cell:
        """The control: more stage 1 for the CPU time of stage 2 on the same devices."""
        other = self.load(arm.stage1_of, seed)
        assert other is not None, f"{arm.name}: stage 2 on the same devices was not run before"
        # As many episodes, on the phone and on the devices each, as stage 2 plays.
        count = self.plan.iterations * self.plan.episodes // 2
        shown = [*pool(BaseAgentConfig()), *asyncio.run(demonstrations(arm, seed, count))]
        probe = LocalModel.load(self._start)
        each = _train(probe, shown, seed, _PROBE_STEPS, arm.rate)[0] / _PROBE_STEPS
        steps = max(1, round(other.training_seconds / each))
        model = LocalModel.load(self._start)
        spent, samples = _train(model, shown, seed, steps, arm.rate)
        model.save(_empty(self.agent(arm.name, seed)))
        return Cell(
            arm=arm.name, seed=seed, commit=commit(), steps=steps, samples=samples, calls=0,
            training_seconds=spent,
        )  # fmt: skip


async def demonstrations(arm: Arm, seed: int, count: int) -> list[ActionSample]:
    """The solver's steps in ``count`` episodes on training templates of the phone, and as many on
    the arm's devices."""
    rng = random.Random(derive(seed, "demonstrations"))
    names = device_tasks(DEVICES_APART * seed, arm.devices)
    jobs = [
        job
        for group in (tasks("train"), names)
        for job in draw_jobs(group, count, rng.getrandbits(32), seeds=TRAIN_SEEDS)
    ]
    return await solver_steps(make_environment(), jobs, rng)


def _train(
    model: LocalModel, shown: Sequence[ActionSample], seed: int, steps: int, rate: float
) -> tuple[float, int]:
    """CPU-seconds and number of samples."""
    config = Stage1Config(steps=steps, learning_rate=rate, questions_first=0.0, seed=1000 + seed)
    done = more_stage1(model, shown, _CONTROL, config, seed=derive(seed, "more stage 1"))
    return done.cpu_seconds, done.samples


def _empty(folder: Path) -> Path:
    """The folder without what an interrupted command left there."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def splits_of(cells: Sequence[Cell]) -> list[str]:
    """The splits that were played, in the order of tables."""
    return [split for split in SPLITS if any(split in cell.outcomes for cell in cells)]
