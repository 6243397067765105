"""Stage 2 as the command line runs it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.cli import models, teams, worlds
from swarm_ui.cli.config import Config, plain
from swarm_ui.cli.output import Bar, Output
from swarm_ui.cli.playing import configured
from swarm_ui.errors import ConfigError
from swarm_ui.pool import Job
from swarm_ui.rundir import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.optim.metrics import IterationMetrics
    from swarm_ui.optim.progress import Progress
    from swarm_ui.optim.team_config import TeamConfig
    from swarm_ui.trace import Episode

_PHASES = {"rollout": (0, 50), "update": (50, 50), "checkpoint": (100, 0), "iteration": (0, 0)}
"""Where a phase begins, in hundredths of an iteration, and how long it is."""
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
    from swarm_ui.optim.team_config import TeamConfig

    return msgspec.convert(config.train, TeamConfig)


def facts(config: Config, critic: bool) -> dict[str, str]:
    """What would be trained, in words."""
    learning, team = team_config(config), config.team
    return {
        "environment": config.environment.name,
        "model": models.described(config.model),
        "team": teams.sized(team),
        "iterations": f"{learning.iterations} of {learning.episodes} episodes",
        "update": f"{learning.update.method}, {learning.update.steps} steps an adapter",
        "edges": learning.edges,
        "credit": "scripted critic" if _critic(config, critic) else "outcome of the episode",
        "out": config.run.out or "runs/<date>-…",
    }


def begun(config: Config, critic: bool) -> Training:
    """Make the run's directory."""
    out = config.run.out
    kind = models.kind_of(config.model)
    if kind not in ("base", "agent", "local"):
        raise ConfigError(
            f"[model] name: '{config.model.name}' cannot be trained; its weights must be in this "
            "process: base, or the folder of a model"
        )
    document = {"made_by": "swarm-ui", "command": "train", "critic": critic, **plain(config)}
    name = f"train-{config.environment.name.partition(':')[0]}"
    run = RunDirectory.create(Path(out) if out else None, name=name, config=document)
    return Training(config, critic, run)


def taken_up(path: Path) -> Training:
    """A run that was broken off. Raises ``ConfigError`` if it is no training run."""
    run = RunDirectory.open_existing(path)
    document = run.config()
    if document.get("command") != "train":
        raise ConfigError(f"'{path}' is not a run of: swarm-ui train")
    return Training(configured(path), bool(document.get("critic")), run)


async def train(job: Training, out: Output) -> Sequence[IterationMetrics]:
    """Train, or go on; returns the figures of all iterations."""
    from swarm_ui.optim.adversary_scripted import ScriptedAdversary
    from swarm_ui.optim.edge_files import save_edges
    from swarm_ui.optim.trainer import TeamTrainer

    config, settings = job.config, team_config(job.config)
    model: Any = models.loaded(config.model)
    names = [f"agent_{k}" for k in range(config.team.agents)]
    try:
        async with worlds.opened(config.environment) as world:
            tasks: Sequence[str] = ()
            if config.environment.name != "phone":
                tasks = await worlds.tasks_of(config.environment, world)

            def draw(iteration: int, count: int, rng: random.Random) -> list[Job]:
                return worlds.training_jobs(config.environment, tasks, count, rng)

            with out.bar("training", 100 * settings.iterations) as bar:
                trainer = TeamTrainer(
                    model,
                    teams.graph_of(config.team, model, names),
                    world.make,
                    draw,
                    config=settings,
                    critic=_critic(config, job.critic),
                    adversary=ScriptedAdversary(),
                    folder=job.run.path,
                    progress=lambda at: _move(bar, at),
                    on_episodes=lambda k, episodes: _keep(job.run, k, episodes),
                    warn=out.warn,
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
    from swarm_ui.optim.critic import ScriptedCritic

    return ScriptedCritic(PhoneEnvironment, seed=config.environment.seed)


def _keep(run: RunDirectory, iteration: int, episodes: Sequence[Episode]) -> None:
    """A few episodes, failed ones first, with their credit."""
    chosen = sorted(episodes, key=lambda episode: bool(episode.success))[:_KEPT]
    run.write_episodes(f"train-{iteration:03d}", chosen)


def _move(bar: Bar, at: Progress) -> None:
    begin, length = _PHASES[at.phase]
    share = at.done / at.total if at.total else 1.0
    done = at.iteration * 100 + begin + int(length * share)
    bar.update(done, f"iteration {min(at.iteration + 1, at.iterations)}: {at.phase}")
