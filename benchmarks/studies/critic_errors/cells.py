"""Stage 2 with critics that make errors, with full or learned weight."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from benchmarks.studies.critic_errors.plan import CRITICS, WITHOUT
from benchmarks.studies.rates import repeated
from benchmarks.studies.weights import digest
from benchmarks.support.critics import NoisyCritic
from benchmarks.support.origin import commit
from swarm_ui.credit import Critic
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.environments import phone
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import Arm, agent_names, base_arms, rollout_arm, trained_arms
from swarm_ui.experiment.training.stage2 import team_config
from swarm_ui.graph.topology import random_dag
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.credit.trust import Trust
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import rollout_many
from swarm_ui.stats import Outcome, outcomes


class CriticCell(msgspec.Struct, frozen=True, kw_only=True):
    """One training run and its test."""

    arm: str
    """``without``; or the critic's errors and its weight, such as ``30-learned``."""
    seed: int
    commit: str
    weights: tuple[tuple[float, ...], ...]
    """Correlation of the critic's scores with outcomes after each iteration, by round."""
    rollouts: tuple[float | None, ...]
    """Success of each iteration's rollouts."""
    outcomes: list[Outcome]
    """Outcomes of the trained team's vote on the test episodes; the run is the seed."""
    digest: str = ""
    """Digest of the trained weights."""
    training_seconds: float
    """CPU time."""
    seconds: float
    """CPU time of training and test."""


def base_outcomes(settings: Settings) -> list[Outcome]:
    """Test outcomes of the untrained team."""
    arms = {arm.name: arm for arm in base_arms(settings)}
    return played(LocalModel.load(BASE_AGENT), arms["base-vote"], settings)


def train(
    settings: Settings,
    name: str,
    seed: int,
    progress: Callable[[float, str], None],
    known: Mapping[str, Sequence[Outcome]] = MappingProxyType({}),
) -> CriticCell:
    """Run one cell: train with the critic of the arm, then test.

    Args:
        settings: the settings of all cells, except the seed.
        name: name of the arm.
        progress: called with the number of finished iterations and the current phase.
        known: test outcomes by digest of the weights. A run that ends with the weights of another
            run is not tested again.
    """
    began = time.process_time()
    settings = dataclasses.replace(settings, seed=seed)
    critic = _critic(name, seed)
    names = agent_names(settings.agents)
    own = random_dag(names, settings.density, random.Random(derive(seed, "team")))
    model = LocalModel.load(BASE_AGENT)

    trainer = TeamTrainer(
        rollout_arm(settings, own).graph(model),
        PhoneEnvironment,
        lambda count, *, seed: phone.training_jobs(settings, count, random.Random(seed)),
        config=team_config(settings, phone.CONCURRENCY),
        critic=critic,
        adversary=ScriptedAdversary(),
    )
    trainer.on_progress = lambda iteration, what, done, total: progress(iteration, what)
    history = asyncio.run(trainer.run()).history
    spent = time.process_time() - began
    progress(settings.iterations, "test")
    arms = {arm.name: arm for arm in trained_arms(settings, [], "no edges")}
    trained = digest(model, names)
    outcomes = known.get(trained) or played(model, arms["trained-vote"], settings)
    return CriticCell(
        arm=name,
        seed=seed,
        commit=commit(),
        weights=tuple(tuple(metrics["critic_weights"] or ()) for metrics in history),
        rollouts=tuple(metrics["success"] for metrics in history),
        outcomes=repeated(outcomes, [seed]),
        digest=trained,
        training_seconds=spent,
        seconds=time.process_time() - began,
    )


def played(model: LocalModel, arm: Arm, settings: Settings) -> list[Outcome]:
    """Outcomes of the test episodes."""
    jobs = phone.test_jobs(settings)["parameters"]
    played = rollout_many(PhoneEnvironment, arm.policy(model), jobs, concurrency=phone.CONCURRENCY)
    return outcomes(asyncio.run(played))


def _critic(name: str, seed: int) -> Critic | None:
    if name == WITHOUT:
        return None
    which, _, trust = name.partition("-")
    errors = CRITICS[which]
    solver = ScriptedCritic(PhoneEnvironment)
    noisy = NoisyCritic(solver, flip=errors.flip, anti=errors.anti, seed=derive(seed, "critic"))
    return Trust(noisy) if trust == "learned" else noisy
