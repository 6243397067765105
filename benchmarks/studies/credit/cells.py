"""One training run with one source of credit, and its test."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from benchmarks.studies.credit.plan import Arm, Plan, Source
from benchmarks.studies.credit.starts import RepeatedPhone, repeated, training_starts
from benchmarks.studies.weights import digest
from benchmarks.support.critics import OutcomeJudge
from benchmarks.support.origin import commit, dirty
from swarm_ui.credit import Critic
from swarm_ui.environments.phone import (
    TEST_SEEDS,
    VALIDATION_SEEDS,
    PhoneEnvironment,
    draw_jobs,
    tasks,
)
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import Arm as Team
from swarm_ui.experiment.teams import rollout_arm, trained_arms
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes.models.pretrained.catalogue import SMOLLM2_CRITIC
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.nodes.models.transformers.causal_model import CausalModel
from swarm_ui.optim.adversary import ScriptedAdversary
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.credit.counterfactual import LeaveOneOut, Shapley
from swarm_ui.optim.credit.critic import calls_of
from swarm_ui.optim.credit.groups import MALT, DrMAS, GiGPO, ProgressAttribution
from swarm_ui.optim.credit.learned import learned_critic
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.rollout import GraphPolicy, Job, rollout_many
from swarm_ui.stats import outcomes
from swarm_ui.trace.records import Episode

CONCURRENCY = 128
RESAMPLES = 2
"""New samples of each message, for resampling."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One arm with one seed."""

    arm: str
    seed: int
    commit: str
    dirty: bool
    test: tuple[float | None, ...]
    """Outcomes of the trained team's vote on the test episodes."""
    validation: tuple[float | None, ...]
    rollouts: tuple[float | None, ...]
    """Success of each iteration's training episodes."""
    samples: int
    """Examples that the updates used, over all iterations."""
    steps: int
    """Optimiser steps over all iterations."""
    calls: int
    """Calls of agents in the training episodes."""
    credit_calls: int
    """Calls of agents to assign the credit."""
    digest: str
    """Digest of the trained weights."""
    training_seconds: float
    """CPU time of rollouts, credit and updates."""
    test_seconds: float
    """CPU time of test and validation."""


def test_jobs(plan: Plan) -> list[Job]:
    """Test episodes: training templates with new parameters, the same for all cells."""
    return draw_jobs(tasks("train"), plan.parameters, 1, seeds=TEST_SEEDS)


def validation_jobs(plan: Plan) -> list[Job]:
    """Validation episodes: training templates with parameters of neither training nor test."""
    return draw_jobs(tasks("train"), plan.validation, 1, seeds=VALIDATION_SEEDS)


def train(plan: Plan, arm: Arm, seed: int, progress: Callable[[float, str], None]) -> Cell:
    """Run one cell: train with the credit of the arm, then test.

    Args:
        plan: the sizes.
        arm: what is particular to this arm.
        seed: seed of training; decides its episodes, the same for all arms.
        progress: called with the number of finished iterations and the current phase.
    """
    began, source = time.process_time(), (commit(), dirty())
    model = LocalModel.load(BASE_AGENT)
    graph = team(plan).graph(model)
    make = partial(RepeatedPhone, plan.attempts)
    critic = None
    if arm.credit != "outcome":
        critic = critic_of(arm.credit, make, graph, model, adapter="agent_0")
    calls = 0

    def played(iteration: int, episodes: Sequence[Episode]) -> None:
        nonlocal calls
        calls += agent_calls(episodes)

    trainer = TeamTrainer(
        graph,
        make,
        lambda count, *, seed: repeated(
            training_starts(plan.starts, random.Random(seed)), plan.attempts
        ),
        config=config_of(plan, arm, seed),
        critic=critic,
        judge=ScriptedCritic(make) if arm.judged else None,
        adversary=None if arm.graded is None else ScriptedAdversary(),
    )
    trainer.on_progress = lambda iteration, what, done, total: progress(iteration, what)
    trainer.on_episodes = played
    history = asyncio.run(trainer.run()).history
    trained = time.process_time()
    progress(plan.iterations, "test")
    test, validation = tested(plan, model)
    return Cell(
        arm=arm.name,
        seed=seed,
        commit=source[0],
        dirty=source[1],
        test=test,
        validation=validation,
        rollouts=tuple(metrics["success"] for metrics in history),
        samples=sum(metrics["pairs"] for metrics in history),
        steps=sum(metrics["steps"] for metrics in history),
        calls=calls,
        credit_calls=calls_of(critic) or 0,
        digest=digest(model, graph.agents),
        training_seconds=round(trained - began, 1),
        test_seconds=round(time.process_time() - trained, 1),
    )


def config_of(plan: Plan, arm: Arm, seed: int) -> TeamConfig:
    """Settings of stage 2: one adapter for all agents, edges drawn in each iteration."""
    return TeamConfig(
        iterations=plan.iterations,
        shared_iterations=plan.iterations,
        episodes=plan.episodes,
        concurrency=CONCURRENCY,
        guide=arm.guide,
        grade_negatives=bool(arm.graded),
        update=UpdateConfig(method=arm.method),
        shared_steps=plan.steps,
        seed=seed,
    )


def team(plan: Plan) -> Team:
    """The team of training and of the recorded episodes: one round, temperature 0.8."""
    return rollout_arm(Settings(agents=plan.agents, rounds=1, temperature=0.8), ())


def critic_of(
    source: Source,
    make_environment: Callable[[], RepeatedPhone],
    graph: CollabGraph,
    model: LocalModel,
    adapter: str | None,
) -> Critic:
    """A critic by its name in :data:`~benchmarks.studies.credit.plan.SOURCES`.

    The value of a decision in replays is the outcome when one greedy agent goes on, never the
    solver's. ``adapter``: the weights of this agent; ``None``: the base agent. Raises
    ``ConfigError`` if the model of the learned critic was not pulled.
    """
    if source == "critic":
        return ScriptedCritic(make_environment)
    if source == "learned":
        return learned_critic(CausalModel.named(SMOLLM2_CRITIC.base), SMOLLM2_CRITIC.folder)
    plain: dict[Source, Critic] = {
        "agents": DrMAS(),
        "states": GiGPO(),
        "tree": MALT(),
        "progress": ProgressAttribution(),
    }
    if source in plain:
        return plain[source]
    alone = GraphPolicy(CollabGraph.solo(model, adapter=adapter), name="greedy")
    judge = OutcomeJudge(make_environment, alone)
    if source == "shapley":
        return Shapley(graph, judge)
    return LeaveOneOut(graph, judge, samples=RESAMPLES if source == "resampled" else 0)


def tested(
    plan: Plan, model: LocalModel, *, trained: bool = True
) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    """Outcomes of a team's vote on the test and on the validation episodes.

    ``trained``: with the adapters of the agents; else the base agent.
    """
    settings = Settings(agents=plan.agents, rounds=1)
    (vote,) = [one for one in trained_arms(settings, [], "") if one.name == "trained-vote"]
    vote = dataclasses.replace(vote, trained=trained)
    jobs = [*test_jobs(plan), *validation_jobs(plan)]
    policy = vote.policy(model)
    episodes = asyncio.run(rollout_many(PhoneEnvironment, policy, jobs, concurrency=CONCURRENCY))
    found = [o.value for o in outcomes(episodes)]
    return tuple(found[: plan.parameters]), tuple(found[plan.parameters :])


def agent_calls(episodes: Sequence[Episode]) -> int:
    """Calls of agents in the episodes."""
    return sum(
        call.node in record.trace.agents
        for episode in episodes
        for record in episode.steps
        for call in record.trace.calls
    )
