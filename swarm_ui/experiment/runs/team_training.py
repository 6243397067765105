"""The training of a team, and the command that evaluates the result."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.experiment.config import Config
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.plugins.run_loggers import make_loggers
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.runs.run_settings import Run, logged_settings, open_environment
from swarm_ui.experiment.runs.unused_settings import changed
from swarm_ui.experiment.teams import agent_names, arm_of
from swarm_ui.experiment.training.ray_training import open_training_place
from swarm_ui.experiment.training.roles import open_critics
from swarm_ui.rollout.pool import Job

if TYPE_CHECKING:
    from swarm_ui.optim.config import TeamConfig
    from swarm_ui.optim.metrics import IterationMetrics
    from swarm_ui.optim.update.distributed.learners import Learners


def trainer_config(config: Config) -> TeamConfig:
    """The ``[train]`` settings, which were checked before."""
    from swarm_ui.optim.config import TeamConfig

    return msgspec.convert(config.train, TeamConfig)


async def train_run(
    run: Run,
    model: Any,
    display: ProgressDisplay,
    warn: Callable[[str], None],
    learners: Learners | None = None,
) -> Sequence[IterationMetrics]:
    """Start or continue training; returns the metrics of all iterations. Closes the model.

    ``learners``: processes that share the updates of the adapters; ``None``: this one alone.
    """
    from swarm_ui.experiment.training.stage2 import TrainingEnvironment, train
    from swarm_ui.optim.callbacks import Callbacks

    config, settings, section = run.config, trainer_config(run.config), run.config.environment
    spec = spec_of(section.name)
    try:
        loggers = make_loggers(config.run.log, run.folder.path)
        callbacks = Callbacks(on_warning=warn, loggers=loggers, logged_config=logged_settings(run))
        async with (
            open_environment(section) as environment,
            open_training_place(config, model, run.folder.path, environment, warn) as playing,
        ):
            tasks = await spec.task_names(section, environment)

            def sample_jobs(iteration: int, count: int, rng: random.Random) -> list[Job]:
                return spec.training_jobs(section, tasks, count, rng, "train")

            graph = arm_of(config.team, agent_names(config.team.agents)).graph(playing.acting)
            # An emulator plays one episode at a time, whatever the settings say.
            most = environment.max_concurrency or settings.concurrency
            settings = dataclasses.replace(settings, concurrency=min(settings.concurrency, most))
            async with open_critics(config, playing.judging, playing.in_workers) as critics:
                place = TrainingEnvironment(
                    playing.environments, sample_jobs, critics.critic, settings.concurrency,
                    critics.judge, critics.adversary, critics.teacher,
                )  # fmt: skip
                with display.bar("training", settings.iterations) as bar:
                    result = await train(
                        run.folder, model, graph, place, settings, bar, callbacks=callbacks,
                        acting=playing.acting, learners=learners,
                    )  # fmt: skip
        run.folder.set_status({"stage": "trained"})
        return result.history
    finally:
        await model.close()


def evaluation_command(run: Run) -> list[str]:
    """The words of the command that evaluates the trained team."""
    config, team = run.config, run.config.team
    words = ["swarm-ui", "eval", config.environment.name]
    for name in spec_of(config.environment.name).reads:
        if changed(config.environment, name):
            value = getattr(config.environment, name)
            if value is True:  # a switch; the others have options of their own
                words += ["--set", f"environment.{name}=true"]
            else:
                words += [f"--{name.replace('_', '-')}", str(value)]
    for wrap in config.environment.wrap:
        words += ["--wrap", wrap]
    if config.model.name != "base":
        words += ["--model", config.model.name]
    for name in ("prompt_format", "prompt_tokens", "constrained", "device", "quantize", "vision"):
        if changed(config.model, name):
            value = getattr(config.model, name)
            words += ["--set", f"model.{name}={str(value).lower()}"]
    words += ["--adapters", str(run.folder.adapters), "--agents", str(team.agents)]
    words += ["--rounds", str(team.rounds), "--views", team.views]
    if trainer_config(config).edges == "learned":
        words += ["--edges", str(run.folder.path)]
    elif team.edges != "random":
        words += ["--edges", team.edges]
    elif trainer_config(config).edges == "fixed" and team.agents > 1:  # the same random edges
        words += ["--set", f"team.density={team.density:g}", "--set", f"team.seed={team.seed}"]
    if team.vote != "majority":
        words += ["--vote", team.vote]
    return words
