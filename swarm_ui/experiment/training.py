"""Training of a team (stage 2), and the files it saves in the run."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.credit import CreditAssigner
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, ModelSection
from swarm_ui.experiment.models import kind_of, learned_adapters, on_hub
from swarm_ui.experiment.progress import Bar
from swarm_ui.experiment.results import Cost
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import LEARNED_EDGES, agent_names, rollout_arm
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.node import derive
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.collector import SampleJobs
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.edges.files import save_edges
from swarm_ui.optim.metrics import IterationMetrics
from swarm_ui.optim.preferences.adversary import Adversary
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.preferences.scripted_adversary import ScriptedAdversary
from swarm_ui.optim.rollout_supervisor import Critics
from swarm_ui.optim.stage1.synthesis.curriculum import Rehearsal
from swarm_ui.optim.trainer import TeamResult, TeamTrainer
from swarm_ui.optim.training_progress import Progress
from swarm_ui.optim.update.adapter_trainer import UpdateConfig
from swarm_ui.optim.update.memory_estimate import ModelShape, Workload, estimate_memory
from swarm_ui.optim.update.team_update import Rehearse
from swarm_ui.optim.update.update_config import defaults_for
from swarm_ui.prompts import format_named
from swarm_ui.report import credit_map
from swarm_ui.rollout.pool import MakeEnvironment
from swarm_ui.storage.run_directory import RunDirectory, write_atomic
from swarm_ui.trace.records import Episode

_UPDATE_SHARE = 0.5
"""Share of an iteration that the progress bar shows after the rollouts."""
_SERVED = "served"
"""The folder in a run that the server reads new adapters from."""
_KEPT_FAILED, _KEPT_SOLVED = 4, 2
"""Number of complete episodes kept of each iteration."""

_SCREEN_TOKENS = {"": 110, "compact": 160, "json": 1000}
"""Tokens of a prompt on the phone, by the prompt format; ``""``: the embedded agent's own."""
_ROWS = 64
"""Most requests that a model of this process decodes at the same time."""


class TrainingEnvironment(NamedTuple):
    """The environment in which a team learns."""

    make_environment: MakeEnvironment
    sample_jobs: SampleJobs
    critic: CreditAssigner | None
    """``None``: the outcome is the credit of every agent."""
    concurrency: int
    judge: CreditAssigner | None = None
    """Says which single actions are right; ``None``: the critic."""
    adversary: Adversary | None = ScriptedAdversary()
    """Writes mistakes; ``None``: only real ones are rejected."""


class TrainedTeam(NamedTuple):
    """The results of stage 2, in addition to the adapters in the run directory."""

    history: tuple[IterationMetrics, ...]
    edges: tuple[Edge, ...]
    """The graph that the trained team is tested on."""
    edges_label: str


async def train(
    run: RunDirectory,
    model: Any,
    graph: CollabGraph,
    environment: TrainingEnvironment,
    config: TeamConfig,
    bar: Bar,
    *,
    keep_adapters: bool = False,
    warn: Callable[[str], None] | None = None,
    acting: Any = None,
) -> TeamResult:
    """Start or continue the training of a team. It can be interrupted at any time (checkpoints).

    Args:
        run: stores checkpoints, metrics, a sample of the episodes, adapters and edges.
        model: holds and trains the adapters.
        graph: the team in rollouts, whose agents ask ``acting``.
        bar: counts iterations.
        keep_adapters: keep the adapters after each iteration, for a learning curve.
        warn: called with warnings of the trainer; default: they are printed above the bar.
        acting: answers with the adapters of ``model``; ``None``: ``model`` itself.
    """
    recorder = _Recorder(run, model, bar, keep_adapters, model if acting is None else acting)
    trainer = TeamTrainer(
        model,
        graph,
        environment.make_environment,
        environment.sample_jobs,
        config=config,
        critic=Critics(environment.critic, environment.judge),
        adversary=environment.adversary,
        rehearse=_rehearsal(model),
        folder=run.path,
        callbacks=Callbacks(
            on_progress=recorder.progress,
            on_episodes=recorder.episodes,
            on_warning=warn or bar.say,
        ),
    )
    result = await trainer.run(resume=True)
    model.save_adapters(run.adapters)
    save_edges(result.edges, run.path / LEARNED_EDGES)
    return result


@asynccontextmanager
async def open_actor(section: ModelSection, learner: Any, run: Path) -> AsyncIterator[Any]:
    """What the agents of a training run ask: the learner, or the server of ``[model] actor``.

    Args:
        section: the choice.
        learner: holds and trains the adapters.
        run: the directory of the run, which the server can read.

    Raises:
        ConfigError: the server serves several models, or another one than the learner.
        ModelUnavailable: it does not answer.
    """
    if not section.actor:
        yield learner
        return
    from swarm_ui.nodes.models.actor_model import ActorModel

    engine = await _engine(section)
    model = ActorModel(engine, learner, run.resolve() / _SERVED)
    try:
        await model.check()
        yield model
    finally:
        await model.close()


async def check_actor(section: ModelSection) -> None:
    """Check that the server of ``[model] actor`` answers. Raises as :func:`open_actor`."""
    if section.actor:
        await (await _engine(section)).close()


async def _engine(section: ModelSection) -> Any:
    from swarm_ui.budget import Budget
    from swarm_ui.nodes import ChatOptions, OpenAIModel, RateLimits, RetryPolicy

    def made(name: str) -> OpenAIModel:
        return OpenAIModel(
            name,
            section.actor,
            api_key_env=section.key_env,
            limits=RateLimits(requests=section.rate_limit, concurrency=section.concurrency),
            retry=RetryPolicy(timeout=section.timeout),
            budget=Budget(section.max_calls, section.max_tokens_total),
            options=ChatOptions(logprobs=True),
        )

    engine = made(section.actor_name or "the actor")
    try:
        served = [model.name for model in await engine.served() if model.parent is None]
    finally:
        await engine.close()
    if section.actor_name in served:
        return engine
    if section.actor_name or len(served) != 1:
        wanted = f"'{section.actor_name}'" if section.actor_name else "one model"
        raise ConfigError(
            f"[model] actor: expected {wanted} at {section.actor}, got "
            f"{', '.join(served) or 'none'}; name one of them with --set model.actor_name=NAME"
        )
    return made(served[0])


def team_config(settings: Settings, concurrency: int) -> TeamConfig:
    """The demo's settings converted to settings of the trainer."""
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
    settings: Settings, run: RunDirectory, model: Any, environment: TrainingEnvironment, bar: Bar
) -> TrainedTeam:
    """Train the team of the demo's settings, and choose the graph to test it on."""
    own = fixed_graph(settings)
    result = await train(
        run,
        model,
        rollout_arm(settings, own).graph(model),
        environment,
        team_config(settings, environment.concurrency),
        bar,
        keep_adapters=True,
    )
    edges, label = _tested_graph(settings, result, own)
    played = [[list(graph.edges) for graph in metrics.graphs] for metrics in result.history]
    document = {"iterations": played, "tested": {"graph": label, "edges": list(edges)}}
    write_atomic(run.edges / "edges.json", json.dumps(document, indent=1) + "\n")
    return TrainedTeam(result.history, edges, label)


def fixed_graph(settings: Settings) -> tuple[Edge, ...]:
    """The DAG of a team whose edges do not change."""
    draws = random.Random(derive(settings.seed, "team"))
    return random_dag(agent_names(settings.agents), settings.density, draws)


def unseen_graph(settings: Settings, seen: Set[frozenset[Edge]]) -> tuple[Edge, ...] | None:
    """A random DAG that is not in ``seen``; ``None``: all may be (two agents have three DAGs)."""
    draws = random.Random(derive(settings.seed, "unseen"))
    for _ in range(1000):
        edges = random_dag(agent_names(settings.agents), settings.density, draws)
        if edges and frozenset(edges) not in seen:
            return edges
    return None


def rollout_cost(run: RunDirectory, history: Sequence[IterationMetrics]) -> Cost:
    """What the rollouts of stage 2 cost."""
    lines = {line["iteration"]: line for line in run.metrics() if line.get("kind") == "rollouts"}
    return Cost.total(
        msgspec.convert({**lines[at.iteration], "seconds": at.rollout_seconds}, Cost)
        for at in history
        if at.iteration in lines
    )


def adapters_after(run: RunDirectory, iteration: int) -> Path:
    """Folder of the adapters after a number of iterations, for the learning curve."""
    return run.path / "checkpoints" / "adapters" / f"after-{iteration:04d}"


def _rehearsal(model: Any) -> Rehearse:
    """Stage-1 samples on invented screens, with replies in the prompt format of the model."""
    start = next(iter(model.adapters), None)  # an adapter may have a format of its own
    form = format_named(model.format_of(start) or "json")
    draw = Rehearsal(KNOWN_WORDS)

    def rehearse(count: int, rng: random.Random) -> list[PreferencePair]:
        return [
            msgspec.structs.replace(
                pair,
                chosen_text=form.write(pair.chosen, pair.decision.observation),
                prompt_format=form.name,
            )
            for pair in draw(count, rng)
        ]

    return rehearse


class _Recorder:
    """A listener of the trainer: updates the bar, and saves samples, costs and adapters."""

    def __init__(
        self, run: RunDirectory, model: Any, bar: Bar, keep_adapters: bool, acting: Any
    ) -> None:
        self._run, self._model, self._bar, self._acting = run, model, bar, acting
        self._keep_adapters = keep_adapters
        self._before = Cost.of_model(acting)

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
            if self._keep_adapters:
                folder = adapters_after(self._run, at.iteration)
                shutil.rmtree(folder, ignore_errors=True)
                self._model.save_adapters(folder)
            note = f"iteration {at.iteration} of {at.iterations} done"
        else:
            done += 1.0
        self._bar.update(done, note)

    def episodes(self, iteration: int, episodes: Sequence[Episode]) -> None:
        cost = Cost.of_model(self._acting, self._before)
        cost.decisions = sum(len(e.steps) for e in episodes)
        self._before = Cost.of_model(self._acting)
        line = {name: getattr(cost, name) for name in Cost.__struct_fields__ if name != "seconds"}
        self._run.log({"kind": "rollouts", "iteration": iteration, **line})
        found = credit_map(tuple(episodes))
        if found is not None:
            self._run.log({"kind": "credit", "iteration": iteration, "agents": found.columns,
                           "values": found.values})  # fmt: skip
        failed = [e for e in episodes if not e.success][:_KEPT_FAILED]
        solved = [e for e in episodes if e.success][:_KEPT_SOLVED]
        self._run.write_episodes(f"train-{iteration:03d}", [*failed, *solved])


def _tested_graph(
    settings: Settings, result: TeamResult, own: Sequence[Edge]
) -> tuple[tuple[Edge, ...], str]:
    """The graph to test the trained team on, and its name in tables."""
    if settings.edges == "fixed":
        return tuple(own), "own DAG"
    if settings.edges == "learned":
        return result.edges.mode().edges, "learned DAG"
    seen = {frozenset(graph.edges) for metrics in result.history for graph in metrics.graphs}
    edges = unseen_graph(settings, seen)
    return (tuple(own), "a DAG") if edges is None else (edges, "unseen DAG")


def training_facts(config: Config, settings: TeamConfig) -> dict[str, str]:
    """The update and its memory, for ``train --dry-run``; nothing is loaded.

    Raises:
        ConfigError: the model's folder does not describe a transformer.
    """
    shape = _shape(config.model)
    if shape is None:
        update = f"{settings.update.method}; rate and steps depend on the size of the model"
        return {"update": update, "memory": "not known before the model is downloaded"}
    defaults = defaults_for(shape.parameters)
    settings = settings.filled(defaults)
    tokens = settings.update.micro_batch_tokens or defaults.micro_batch_tokens
    update = (
        f"{settings.update.method}, {settings.update.steps} steps an adapter, "
        f"{settings.shared_steps} while one is shared, rate {settings.update.lr:g}, at most "
        f"{tokens:,} tokens a forward"
    )
    work = _workload(config, settings, shape, tokens)
    return {"update": update, "memory": str(estimate_memory(shape, work))}


def _shape(section: ModelSection) -> ModelShape | None:
    """The sizes of the model; ``None``: it is still on the hub."""
    kind = kind_of(section)
    if kind == "base":
        from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT

        return ModelShape.of_folder(BASE_AGENT)
    if kind == "agent":
        return ModelShape.of_folder(Path(section.name))
    return None if on_hub(section) else ModelShape.of_folder(model_folder(section.name))


def _workload(config: Config, settings: TeamConfig, shape: ModelShape, tokens: int) -> Workload:
    model, update = config.model, settings.update
    quantized = model.quantize == "4bit"
    cast = shape.bfloat16 or quantized if update.autocast is None else update.autocast
    eager = update.eager_attention
    return Workload(
        adapters=len(learned_adapters(config)),
        rank=settings.rank,
        layers=None if settings.lora_layers is None else len(settings.lora_layers),
        micro_batch_tokens=tokens,
        batch_rows=update.batch_size * (2 if update.method in ("dpo", "ipo") else 1),
        checkpointing=update.checkpointing,
        autocast=cast,
        eager_attention=cast and model.device == "cpu" if eager is None else eager,
        precision="4bit" if quantized else "bfloat16" if shape.bfloat16 else "float32",
        prompt_tokens=_SCREEN_TOKENS[_prompt_format(model)],
        rows=min(_ROWS, settings.concurrency * config.team.agents),
    )


def _prompt_format(section: ModelSection) -> str:
    """The prompt format; empty: the embedded agent's own."""
    if kind_of(section) != "local":
        return ""
    places = [Path(section.adapters)] if section.adapters else []
    places += sorted(Path(section.adapters).glob("*")) if section.adapters else []
    places.append(model_folder(section.name))
    known = [read_metadata(place).prompt_format for place in places if os.path.isdir(place)]
    return next(filter(None, (section.prompt_format, *known)), "json")
