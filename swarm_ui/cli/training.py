"""Stage 2 as the command line runs it."""

from __future__ import annotations

import random
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.cli import flags, models, teams, worlds
from swarm_ui.cli.config import Config, Draft, plain
from swarm_ui.cli.output import Bar, Output
from swarm_ui.cli.playing import amended, configured
from swarm_ui.errors import ConfigError
from swarm_ui.report.contents import EpisodeSet, credit_map
from swarm_ui.rollout.pool import Job
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.optim.config import TeamConfig
    from swarm_ui.optim.metrics import IterationMetrics
    from swarm_ui.optim.training_progress import Progress
    from swarm_ui.trace.records import Episode

_PHASES = {"rollout": (0, 50), "update": (50, 50), "checkpoint": (100, 0), "iteration": (0, 0)}
"""Where a phase begins, in hundredths of an iteration, and how long it is."""
_TEAM = {"agents": 4, "rounds": 3, "temperature": 0.8, "views": "shuffle"}
"""What holds for a team that learns, where nothing else is said."""
_GRAPHS = 4
"""Drawn in an iteration where edges are learned, and nothing else is said."""
_DOING = {"rollout": "rollouts", "update": "adapters", "checkpoint": "saving"}
_KEPT = 6
"""Episodes of each iteration that are kept."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training run."""

    config: Config
    critic: bool
    run: RunDirectory


def team_config(config: Config) -> TeamConfig:
    """``[train]``, checked before."""
    from swarm_ui.optim.config import TeamConfig, current_names

    return msgspec.convert(current_names(config.train), TeamConfig)


def settled(found: Draft) -> Config:
    """The configuration of a training run, where a team talks and explores unless told otherwise.

    Raises:
        ConfigError: all its mistakes.
    """
    for name, value in _TEAM.items():
        if ("team", name) not in found.places:
            found.put(("team", name), value, f"[team] {name}")
    learning, place = found.values.get("train"), found.values.get("environment")
    if isinstance(learning, dict) and learning.get("edges") == "learned":
        # One graph cannot be compared with others.
        found.values["train"] = {"graphs": _GRAPHS, **learning}
    if isinstance(place, dict) and place.get("name") == "mind2web":
        if place.get("split") not in (None, "", "train"):
            where = found.places.get(("environment", "split"), "split")
            found.mistakes.append(f"{where}: only 'train' is trained on, the others are tests")
        found.put(("environment", "split"), "train", "training")
    return flags.settled(found, train=True)


def facts(config: Config, critic: bool, job: Training | None = None) -> dict[str, str]:
    """What would be trained, in words; ``job``: that is taken up."""
    learning, team = team_config(config), config.team
    return {
        "environment": config.environment.name,
        "model": models.described(config.model),
        "team": teams.sized(team),
        "iterations": f"{learning.iterations} of {learning.episodes} episodes",
        "update": f"{learning.update.method}, {learning.update.steps} steps an adapter",
        "edges": learning.edges,
        "credit": "scripted critic" if _critic(config, critic) else "outcome of the episode",
        "out": str(job.run.path) if job is not None else config.run.out or "runs/<date>-…",
    }


def begun(config: Config, critic: bool) -> Training:
    """Make the run's directory."""
    out = config.run.out
    if models.kind_of(config.model) not in models.IN_PROCESS:
        raise ConfigError(
            f"[model] name: '{config.model.name}' cannot be trained; its weights must be in this "
            "process: base, or the folder of a model"
        )
    document = {"made_by": "swarm-ui", "command": "train", "critic": critic, **plain(config)}
    name = f"train-{config.environment.name.partition(':')[0]}"
    run = RunDirectory.create(Path(out) if out else None, name=name, config=document)
    return Training(config, critic, run)


def taken_up(path: Path, overrides: Draft, given: Sequence[str] = ()) -> Training:
    """A run that was broken off.

    Raises:
        ConfigError: it is no training run, or must not be changed so
            (see :func:`swarm_ui.cli.playing.amended`).
    """
    run = RunDirectory.open_existing(path)
    document = run.config()
    if document.get("command") != "train":
        raise ConfigError(f"'{path}' is not a run of: swarm-ui train")
    config = amended(configured(path), overrides, given)
    return Training(config, bool(document.get("critic")), run)


def following(job: Training) -> str:
    """The command that tests what was trained."""
    config, team = job.config, job.config.team
    words = ["swarm-ui", "eval", config.environment.name]
    if config.environment.data:
        words += ["--data", config.environment.data]
    if config.model.name != "base":
        words += ["--model", config.model.name]
    words += ["--adapters", str(job.run.adapters), "--agents", str(team.agents)]
    words += ["--rounds", str(team.rounds), "--views", team.views]
    if team_config(config).edges == "learned":
        words += ["--edges", str(job.run.path)]
    elif team.edges != "random":
        words += ["--edges", team.edges]
    if team.vote != "majority":
        words += ["--vote", team.vote]
    return shlex.join(words)


async def train(job: Training, model: Any, out: Output) -> Sequence[IterationMetrics]:
    """Train, or go on; returns the figures of all iterations."""
    from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
    from swarm_ui.optim.callbacks import Callbacks
    from swarm_ui.optim.edges.files import save_edges
    from swarm_ui.optim.preferences.scripted_adversary import ScriptedAdversary
    from swarm_ui.optim.stage1.synthesis.rehearsal import Rehearsal
    from swarm_ui.optim.trainer import TeamTrainer

    config, settings = job.config, team_config(job.config)
    names = [f"agent_{k}" for k in range(config.team.agents)]
    try:
        async with worlds.opened(config.environment) as world:
            tasks: Sequence[str] = ()
            if config.environment.name != "phone":
                tasks = await worlds.tasks_of(config.environment, world)

            def draw(iteration: int, count: int, rng: random.Random) -> list[Job]:
                return worlds.training_jobs(config.environment, tasks, count, rng)

            with out.bar("training", 100 * settings.iterations, share=True) as bar:
                trainer = TeamTrainer(
                    model,
                    teams.graph_of(config.team, model, names),
                    world.make,
                    draw,
                    config=settings,
                    critic=_critic(config, job.critic),
                    adversary=ScriptedAdversary(),
                    rehearse=Rehearsal(KNOWN_WORDS),
                    folder=job.run.path,
                    callbacks=Callbacks(
                        on_progress=lambda at: _move(bar, at),
                        on_episodes=lambda k, episodes: _keep(job.run, k, episodes),
                        on_warning=out.warn,
                    ),
                )
                result = await trainer.run(resume=True)
        model.save_adapters(job.run.adapters)
        save_edges(result.edges, job.run.edges / "distribution.safetensors")
        job.run.set_status({"stage": "trained"})
        return result.history
    finally:
        await model.close()


def _critic(config: Config, wanted: bool) -> Any:
    """Who gives credit; ``None``: the outcome."""
    if not wanted or config.environment.name != "phone":
        return None
    from swarm_ui.environments.phone import PhoneEnvironment
    from swarm_ui.optim.credit.assigners.critic import ScriptedCritic

    return ScriptedCritic(PhoneEnvironment, seed=config.environment.seed)


def _keep(run: RunDirectory, iteration: int, episodes: Sequence[Episode]) -> None:
    """Credit and cost of all episodes, and a few of them, failed ones first."""
    from swarm_ui.report.totals import RunTotals

    work = RunTotals.of_episodes([EpisodeSet(name="all", episodes=episodes)]).costs["all"]
    run.log({"kind": "rollouts", "iteration": iteration, "decisions": work.decisions,
             "calls": work.calls, "prompt_tokens": work.prompt,
             "completion_tokens": work.completion})  # fmt: skip
    found = credit_map(tuple(episodes))
    if found is not None:
        run.log({"kind": "credit", "iteration": iteration, "agents": found.columns,
                 "values": found.values})  # fmt: skip
    chosen = sorted(episodes, key=lambda episode: bool(episode.success))[:_KEPT]
    run.write_episodes(f"train-{iteration:03d}", chosen)


def _move(bar: Bar, at: Progress) -> None:
    begin, length = _PHASES[at.phase]
    share = at.done / at.total if at.total else 1.0
    done = at.iteration * 100 + begin + int(length * share)
    what = _DOING.get(at.phase)
    if what is None:
        bar.update(done, f"{at.done} of {at.total} iterations done")
        return
    count = f" {at.done}/{at.total}" if at.total > 1 else ""
    bar.update(done, f"iteration {at.iteration + 1}/{at.iterations}: {what}{count}")
