"""Arms on the simulated phone: teams of a tiny agent, as they are or trained by stage 2.

``set`` has the fields of the sections ``[team]`` and ``[train]`` of a settings file, such as
``{"team.rounds": 1, "train.update.method": "dpo"}``. Of a team, ``agents``, ``rounds``, ``edges``
(``"random"`` or ``"none"``), ``density`` and ``temperature`` count here; its agents have shuffled
views.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from benchmarks.cell import Cell, read_cells
from benchmarks.support.critics import NoisyCritic
from benchmarks.support.origin import origin_here
from demos.base_agent.stream import rehearsal_for
from swarm_ui import CollabGraph, Critic, Judge
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, tasks
from swarm_ui.errors import ConfigError
from swarm_ui.node import derive
from swarm_ui.nodes import BASE_AGENT, LocalModel
from swarm_ui.optim import EdgeDistribution, ScriptedAdversary, ScriptedCritic
from swarm_ui.optim.adversary import Adversary, Teacher
from swarm_ui.optim.config import TeamConfig, UpdateConfig
from swarm_ui.optim.metrics import Metrics
from swarm_ui.optim.trainer import SampleJobs, TeamResult, TeamTrainer
from swarm_ui.rollout import GraphPolicy, Job, MakeEnvironment, Policy, rollout_many, spread_jobs
from swarm_ui.stats import outcomes
from swarm_ui.topology import Edge, random_dag
from swarm_ui.trace.records import Episode

Jobs = Mapping[str, Sequence[Job]]
TEST_DRAW = 1
"""Seed for choosing test episodes: the same for all arms, so that they can be compared."""
CONCURRENCY = 128
SPLITS = {"parameters": tasks("train"), "templates": tasks("new_templates"),
          "apps": tasks("new_apps")}  # fmt: skip
QUICK: Mapping[str, Any] = {
    "train.iterations": 1, "train.shared_iterations": 1, "train.episodes": 8,
    "train.update.steps": 2, "train.update.batch_size": 8,
}  # fmt: skip
_QUICK_EPISODES = 4
_DAGS = 3
_PROBE = 40
"""Steps of stage 1 from which the time of one is measured."""


class Roles(NamedTuple):
    """Who takes part in a training; see ``TeamTrainer``."""

    critic: Critic | None = None
    judge: Judge | None = None
    adversary: Adversary | None = None
    teacher: Teacher | None = None


class Trained(NamedTuple):
    """A team after its training, for its tests."""

    model: LocalModel
    agents: Sequence[str]
    seed: int
    set: Mapping[str, Any]
    history: Sequence[Metrics]
    learned: Sequence[Edge]
    """The most probable edges, if edges were learned."""


def phone_tests(**counts: int) -> Jobs:
    """Test episodes of the phone, by split: ``parameters=``, ``templates=``, ``apps=``."""
    return {
        f"new {name}": PhoneEnvironment.test_jobs(counts[name], seed=TEST_DRAW, tasks=held_out)
        for name, held_out in SPLITS.items()
        if name in counts
    }


def shortened(tests: Jobs, *, quick: bool) -> Jobs:
    """A few of the test episodes, if this is a trial."""
    return {split: found[: _QUICK_EPISODES if quick else None] for split, found in tests.items()}


def phone_jobs(seed: int) -> SampleJobs:
    """Training episodes of the phone's training templates, the same for all seeds of training."""
    return lambda count, /, *, seed: spread_jobs(
        tasks("train"), count, random.Random(seed).getrandbits(32), TRAIN_SEEDS
    )


def scripted(seed: int, team: CollabGraph, *, errors: float = 0.03) -> Roles:
    """The critic that knows the solution; this share of its verdicts is inverted."""
    critic = NoisyCritic(ScriptedCritic(PhoneEnvironment), flip=errors, seed=derive(seed, "critic"))
    return Roles(critic=critic, adversary=ScriptedAdversary())


# -- policies -------------------------------------------------------------------------------------


def names_of(count: int) -> list[str]:
    """The names of a team's agents."""
    return [f"agent_{k}" for k in range(count)]


def team(
    model: LocalModel,
    agents: int = 4,
    rounds: int = 1,
    edges: Sequence[Edge] = (),
    *,
    trained: bool = True,
    vote: Literal["majority", "probability"] = "probability",
    temperature: float | None = None,
) -> CollabGraph:
    """Agents with shuffled views; ``trained``: each with the adapter of its own name."""
    names = names_of(agents)
    if agents == 1:
        adapter = names[0] if trained else None
        return CollabGraph.solo(model, adapter=adapter, temperature=temperature, view="shuffle")
    return CollabGraph.collaborative(
        agents, rounds, model=model, edges=edges, adapters=names if trained else None,
        views="shuffle", vote=vote, temperature=temperature,
    )  # fmt: skip


def untrained_vote(model: LocalModel) -> Policy:
    """A vote of four agents without adapters."""
    return GraphPolicy(team(model, trained=False))


def vote(done: Trained) -> Policy:
    """A vote without edges. One agent alone is asked four times."""
    if len(done.agents) == 1:
        return GraphPolicy(
            CollabGraph.collaborative(
                4, 1, model=done.model, edges=(), adapters=[done.agents[0]] * 4, views="shuffle",
                vote="probability",
            )
        )  # fmt: skip
    return GraphPolicy(team(done.model, len(done.agents)))


def one_agent(done: Trained) -> Policy:
    """The first agent, greedy."""
    return GraphPolicy(CollabGraph.solo(done.model, adapter=done.agents[0]))


def dag(number: int) -> Callable[[Trained], Policy]:
    """The team on a DAG that it did not see in training, or on the edges that it learned."""

    def policy(done: Trained) -> Policy:
        edges = done.learned or _unseen(done)[number]
        return GraphPolicy(team(done.model, len(done.agents), done.set["team.rounds"], edges))

    return policy


def own_dag(done: Trained) -> Policy:
    """The team on the DAG of its training."""
    edges = _own_edges(done.set, done.seed)
    return GraphPolicy(team(done.model, len(done.agents), done.set["team.rounds"], edges))


def _own_edges(given: Mapping[str, Any], seed: int) -> tuple[Edge, ...]:
    if given.get("team.edges") == "none":
        return ()
    names, draws = names_of(given["team.agents"]), random.Random(derive(seed, "team"))
    return random_dag(names, given.get("team.density", 0.5), draws)


def _unseen(done: Trained) -> list[tuple[Edge, ...]]:
    seen = {frozenset((a, b) for a, b in graph) for at in done.history for graph in at["graphs"]}
    draws, found = random.Random(derive(done.seed, "unseen")), dict[frozenset[Edge], Any]()
    while len(found) < _DAGS:
        edges = random_dag(done.agents, done.set.get("team.density", 0.5), draws)
        if edges and frozenset(edges) not in seen:
            found.setdefault(frozenset(edges), edges)
    return list(found.values())


# -- playing --------------------------------------------------------------------------------------


def played(
    arm: str,
    policy: Policy,
    tests: Jobs,
    *,
    seed: int | None = None,
    make: MakeEnvironment = PhoneEnvironment,
    training: Mapping[str, float] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Cell:
    """The cell of a policy on the test episodes of all splits, with the seed and the work of its
    training, if there was one, and what else was measured."""
    work = {} if training is None else {"training": training}
    cell = Cell(arm=arm, seed=seed, work=work, notes=notes or {}, origin=origin_here())
    return asyncio.run(tested(cell, policy, tests, make, concurrency=CONCURRENCY))


async def tested(
    cell: Cell, policy: Policy, tests: Jobs, make: MakeEnvironment, **options: Any
) -> Cell:
    """The cell with further test episodes; ``options`` are those of ``rollout_many``."""
    for split, chosen in tests.items():
        began = time.process_time()
        episodes = await rollout_many(make, policy, chosen, **options)
        seconds = round(time.process_time() - began, 1)
        found = {**cell.outcomes, split: outcomes(episodes, cell.seed or 0)}
        work = {**cell.work, split: {"calls": calls_of(episodes), "cpu_s": seconds}}
        cell = msgspec.structs.replace(cell, outcomes=found, work=work)
    return cell


def calls_of(episodes: Iterable[Episode]) -> int:
    """Calls of models in these episodes."""
    return sum(len(step.trace.calls) for episode in episodes for step in episode.steps)


async def trained_by(trainer: TeamTrainer) -> tuple[TeamResult, dict[str, float]]:
    """The result of a training, which continues an interrupted one, and its work."""
    calls, began = [0], time.process_time()

    def count(iteration: int, episodes: Sequence[Episode]) -> None:
        calls[0] += calls_of(episodes)

    trainer.on_episodes = count
    result = await trainer.run(resume=True)
    return result, {
        "cpu_s": round(time.process_time() - began, 1), "calls": calls[0],
        "steps": sum(at["steps"] for at in result.history),
        "samples": sum(at["pairs"] for at in result.history),
    }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """A policy of an agent that the study does not train."""

    policy: Callable[[LocalModel], Policy]
    tests: Callable[[], Jobs]
    model: Callable[[], LocalModel] = LocalModel.load
    make: MakeEnvironment = PhoneEnvironment
    seeded: bool = False

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        tests = shortened(self.tests(), quick=quick)
        yield played(name, self.policy(self.model()), tests, make=self.make)


@dataclass(frozen=True, kw_only=True)
class Train:
    """A team that stage 2 trains, and its tests."""

    tests: Callable[[], Jobs]
    set: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``[team]`` and ``[train]``; see the module."""
    roles: Callable[[int, CollabGraph], Roles] = scripted
    """By the seed of the training and the team."""
    policies: Mapping[str, Callable[[Trained], Policy]] = field(default_factory=lambda: {"": vote})
    """What is tested, by the end of the arm's name."""
    agent: Path = BASE_AGENT
    make: MakeEnvironment = PhoneEnvironment
    test_make: MakeEnvironment | None = None
    """The environment of the tests; ``None``: ``make``."""
    jobs: Callable[[int], SampleJobs] = phone_jobs
    """Training episodes, by the seed of the training."""
    rehearsal: float = 0.0
    """Share of each update that is samples of stage 1."""
    seeded: bool = True

    def but(self, given: Mapping[str, Any] | None = None, **changes: Any) -> Train:
        """This arm with other settings."""
        return replace(self, set={**self.set, **(given or {})}, **changes)

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        assert seed is not None
        tests = shortened(self.tests(), quick=quick)
        done, work, notes = self.trained(seed, quick=quick, folder=folder)
        for test, policy in self.policies.items():
            arm = f"{name}; {test}" if test else name
            yield played(arm, policy(done), tests, seed=seed, make=self.test_make or self.make,
                         training=work, notes=notes)  # fmt: skip

    def trained(
        self, seed: int, *, quick: bool, folder: Path
    ) -> tuple[Trained, dict[str, float], dict[str, Any]]:
        """The team after its training, the work, and the success of the rollouts."""
        given = {"team.agents": 4, "team.rounds": 1, "team.temperature": 0.8, **self.set}
        given |= QUICK if quick else {}
        config = team_config(given, seed)
        model, own = LocalModel.load(self.agent), _own_edges(given, seed)
        graph = team(
            model, given["team.agents"], given["team.rounds"], own, vote="majority",
            temperature=given["team.temperature"],
        )  # fmt: skip
        roles = self.roles(seed, graph)
        trainer = TeamTrainer(
            graph, self.make, self.jobs(seed), critic=roles.critic, judge=roles.judge,
            adversary=roles.adversary, teacher=roles.teacher, config=config, folder=folder,
            edges=EdgeDistribution(graph, density=given.get("team.density", 0.5)),
        )  # fmt: skip
        if self.rehearsal:
            trainer.rehearse = rehearsal_for(model, self.rehearsal)
        result, work = asyncio.run(trained_by(trainer))
        learned = result.edges.mode().edges if config.edges == "learned" else ()
        notes = {
            "rollouts": [at["success"] for at in result.history],
            "critic weights": [at["critic_weights"] for at in result.history],
        }
        agents = names_of(given["team.agents"])
        return Trained(model, agents, seed, given, result.history, learned), work, notes


@dataclass(frozen=True, kw_only=True)
class MoreStage1:
    """An agent after more stage 1, for the CPU time of another arm with this seed."""

    study: str
    of: str
    train: Callable[[int, int], tuple[LocalModel, Mapping[str, float]]]
    """The agent and the work, by seed and steps."""
    tests: Callable[[], Jobs]
    policies: Mapping[str, Callable[[LocalModel], Policy]]
    make: MakeEnvironment = PhoneEnvironment
    seeded: bool = True

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        assert seed is not None
        cost = [c.work["training"]["cpu_s"] for c in read_cells(self.study)
                if (c.arm, c.seed) == (self.of, seed)]  # fmt: skip
        if not cost and not quick:
            raise ConfigError(f"{name}, seed {seed}: play '{self.of}' with this seed before")
        steps = 3
        if not quick:
            each = self.train(seed, _PROBE)[1]["cpu_s"] / _PROBE
            steps = max(1, round(cost[0] / each))
        model, work = self.train(seed, steps)
        for test, policy in self.policies.items():
            arm = f"{name}; {test}" if test else name
            tests = shortened(self.tests(), quick=quick)
            yield played(arm, policy(model), tests, seed=seed, make=self.make, training=work)


def team_config(given: Mapping[str, Any], seed: int) -> TeamConfig:
    """The settings of the trainer: the fields that begin with ``train.``."""
    own = {key.removeprefix("train."): v for key, v in given.items() if key.startswith("train.")}
    names = [key for key in own if key.startswith("update.")]
    update = UpdateConfig(**{key.removeprefix("update."): own.pop(key) for key in names})
    own["shared_iterations"] = min(own.get("shared_iterations", 0), own.get("iterations", 5))
    return TeamConfig(update=update, concurrency=CONCURRENCY, seed=seed, **own)
