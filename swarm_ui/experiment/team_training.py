"""Stage 2 as the demo runs it: the team, its critic and adversary, and what is kept of it all."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence, Set
from pathlib import Path
from typing import NamedTuple

from swarm_ui.credit import CreditAssigner
from swarm_ui.experiment.arms import rollout_arm
from swarm_ui.experiment.console import Bar
from swarm_ui.experiment.results import Work
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.workers import sample, used
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.collector import SampleJobs
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.edges.files import save_edges
from swarm_ui.optim.metrics import IterationMetrics
from swarm_ui.optim.preferences.scripted_adversary import ScriptedAdversary
from swarm_ui.optim.stage1.synthesis.rehearsal import Rehearsal
from swarm_ui.optim.trainer import TeamResult, TeamTrainer
from swarm_ui.optim.training_progress import Progress
from swarm_ui.optim.update.adapter_trainer import UpdateConfig
from swarm_ui.report import credit_map
from swarm_ui.rollout.episodes import MakeEnvironment
from swarm_ui.storage.run_directory import RunDirectory, write_atomic
from swarm_ui.trace.records import Episode

_UPDATE_SHARE = 0.5
"""Where the bar stands within an iteration when its rollouts are done."""


class World(NamedTuple):
    """Where a team learns."""

    make_environment: MakeEnvironment
    sample_jobs: SampleJobs
    critic: CreditAssigner | None
    """``None``: the outcome is everybody's credit."""
    concurrency: int


class Trained(NamedTuple):
    """What stage 2 left behind, beside the adapters in the run directory."""

    history: tuple[IterationMetrics, ...]
    edges: tuple[Edge, ...]
    """The graph that the trained team is tested on."""
    drawn: str
    """What that graph is, for labels."""


def team_config(settings: Settings, concurrency: int) -> TeamConfig:
    return TeamConfig(
        iterations=settings.iterations,
        shared_iterations=min(settings.shared_iterations, settings.iterations),
        episodes=settings.episodes,
        concurrency=concurrency,
        edges=settings.edges,
        density=settings.density,
        graphs=4 if settings.edges == "learned" else 1,
        update=UpdateConfig(method=settings.method, steps=settings.steps, lr=settings.lr),
        rehearsal=settings.rehearsal,
        shared_steps=settings.shared_steps,
        seed=settings.seed,
    )


async def train_team(
    settings: Settings, run: RunDirectory, model: LocalModel, world: World, bar: Bar
) -> Trained:
    """Train, or go on training, in the run directory; checkpoints make that safe at any moment."""
    own = own_graph(settings)
    keeper = _Keeper(run, model, bar)
    trainer = TeamTrainer(
        model,
        rollout_arm(settings, own).graph(model),
        world.make_environment,
        world.sample_jobs,
        config=team_config(settings, world.concurrency),
        critic=world.critic,
        adversary=ScriptedAdversary(),
        rehearse=Rehearsal(KNOWN_WORDS),
        folder=run.path,
        callbacks=Callbacks(
            on_progress=keeper.progress, on_episodes=keeper.episodes, on_warning=bar.say
        ),
    )
    result = await trainer.run(resume=True)
    model.save_adapters(run.adapters)
    edges, drawn = _tested(settings, result, own)
    _save_edges(run, result, edges, drawn)
    return Trained(result.history, edges, drawn)


def own_graph(settings: Settings) -> tuple[Edge, ...]:
    """The DAG of a team whose edges do not change."""
    draws = random.Random(derive(settings.seed, "team"))
    return random_dag(_names(settings), settings.density, draws)


def unseen_graph(settings: Settings, seen: Set[frozenset[Edge]]) -> tuple[Edge, ...] | None:
    """A DAG that is not among those; ``None``: every one may be (two agents have three)."""
    draws = random.Random(derive(settings.seed, "unseen"))
    for _ in range(1000):
        edges = random_dag(_names(settings), settings.density, draws)
        if edges and frozenset(edges) not in seen:
            return edges
    return None


def _names(settings: Settings) -> list[str]:
    return [f"agent_{k}" for k in range(settings.agents)]


def rollout_work(run: RunDirectory, history: Sequence[IterationMetrics]) -> Work:
    """What the rollouts of stage 2 cost."""
    costs = {line["iteration"]: line for line in run.metrics() if line.get("kind") == "rollouts"}
    total = Work()
    for metrics in history:
        line = costs.get(metrics.iteration)
        if line is not None:
            counts = {name: line.get(name, 0) for name in Work.__struct_fields__}
            total.add(Work(**{**counts, "seconds": metrics.rollout_seconds}))  # type: ignore[arg-type]
    return total


class _Keeper:
    """Listens to the trainer: moves the bar, keeps samples, costs and each iteration's adapters."""

    def __init__(self, run: RunDirectory, model: LocalModel, bar: Bar) -> None:
        self._run, self._model, self._bar = run, model, bar
        self._before = used(model)

    def progress(self, at: Progress) -> None:
        done = float(at.iteration)
        note = f"iteration {at.iteration + 1} of {at.iterations}"
        share = at.done / at.total if at.total else 1.0
        if at.phase == "rollout":
            done, note = done + _UPDATE_SHARE * share, f"{note}: episode {at.done}/{at.total}"
        elif at.phase == "update":
            done += _UPDATE_SHARE + (1.0 - _UPDATE_SHARE) * share
            note = f"{note}: training, adapter {min(at.done + 1, at.total)}/{at.total}"
        elif at.phase == "iteration":
            self._keep_adapters(at.iteration)
            note = f"iteration {at.iteration} of {at.iterations} done"
        else:
            done += 1.0
        self._bar.update(done, note)

    def episodes(self, iteration: int, episodes: Sequence[Episode]) -> None:
        work = used(self._model, self._before)
        work.decisions = sum(len(e.steps) for e in episodes)
        self._before = used(self._model)
        line = {name: getattr(work, name) for name in Work.__struct_fields__ if name != "seconds"}
        self._run.log({"kind": "rollouts", "iteration": iteration, **line})
        found = credit_map(tuple(episodes))
        if found is not None:
            self._run.log({"kind": "credit", "iteration": iteration, "agents": found.columns,
                           "values": found.values})  # fmt: skip
        self._run.write_episodes(f"train-{iteration:03d}", sample(episodes))

    def _keep_adapters(self, iteration: int) -> None:
        place = kept_adapters(self._run, iteration)
        shutil.rmtree(place, ignore_errors=True)
        self._model.save_adapters(place)


def kept_adapters(run: RunDirectory, iteration: int) -> Path:
    """Where the adapters after so many iterations are kept, for the learning curve."""
    return run.path / "checkpoints" / "adapters" / f"after-{iteration:04d}"


def _tested(settings: Settings, result: TeamResult, own: Sequence[Edge]) -> tuple[
    tuple[Edge, ...], str
]:  # fmt: skip
    """The graph to test the trained team on."""
    if settings.edges == "fixed":
        return tuple(own), "own DAG"
    if settings.edges == "learned":
        return result.edges.mode().edges, "learned DAG"
    seen = {frozenset(graph.edges) for metrics in result.history for graph in metrics.graphs}
    edges = unseen_graph(settings, seen)
    return (tuple(own), "a DAG") if edges is None else (edges, "unseen DAG")


def _save_edges(run: RunDirectory, result: TeamResult, edges: Sequence[Edge], drawn: str) -> None:
    played = [[list(graph.edges) for graph in metrics.graphs] for metrics in result.history]
    document = {"iterations": played, "tested": {"graph": drawn, "edges": list(edges)}}
    write_atomic(run.edges / "edges.json", json.dumps(document, indent=1) + "\n")
    save_edges(result.edges, run.edges / "distribution.safetensors")
