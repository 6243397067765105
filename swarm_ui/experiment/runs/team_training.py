"""The training of a team, and the settings that evaluate the result."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from swarm_ui.experiment.config import Config, EnvironmentSection, ModelSection, TeamSection
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.models import kind_of
from swarm_ui.experiment.plugins.run_loggers import Log, opened_log
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.runs.run_settings import Run, logged_settings, open_environment
from swarm_ui.experiment.runs.unused_settings import OVER_NETWORK, changed
from swarm_ui.experiment.teams import agent_names, arm_of
from swarm_ui.experiment.training.ray_training import open_training_place
from swarm_ui.experiment.training.roles import open_critics
from swarm_ui.rollout import Job

if TYPE_CHECKING:
    from swarm_ui.optim.config import TeamConfig
    from swarm_ui.optim.distributed import Processes
    from swarm_ui.optim.metrics import Metrics


def trainer_config(config: Config) -> TeamConfig:
    """The ``[train]`` settings, which were checked before."""
    from swarm_ui.optim.config import TeamConfig

    return msgspec.convert(config.train, TeamConfig)


async def train_run(
    run: Run,
    model: Any,
    display: ProgressDisplay,
    warn: Callable[[str], None],
    processes: Processes | None = None,
) -> Sequence[Metrics]:
    """Start or continue training; returns the metrics of all iterations. Closes the model.

    ``processes``: those that share the updates of the adapters; ``None``: this one alone.
    """
    config = run.config
    try:
        shown = logged_settings(run) | {"train": dataclasses.asdict(trainer_config(config))}
        logging = opened_log(config.run.log, run.folder.path, shown, warn)
        with logging as log:
            return await _trained(run, model, display, warn, processes, log)
    finally:
        await model.close()


async def _trained(
    run: Run,
    model: Any,
    display: ProgressDisplay,
    warn: Callable[[str], None],
    processes: Processes | None,
    log: Log,
) -> Sequence[Metrics]:
    from swarm_ui.experiment.training.stage2 import TrainingEnvironment, train
    from swarm_ui.optim.edges.distribution import EdgeDistribution

    config, settings, section = run.config, trainer_config(run.config), run.config.environment
    spec = spec_of(section.name)
    async with (
        open_environment(section) as environment,
        open_training_place(config, model, run.folder.path, environment, warn) as playing,
    ):
        tasks = await spec.task_names(section, environment)

        def sample_jobs(count: int, /, *, seed: int) -> list[Job]:
            return spec.training_jobs(section, tasks, count, random.Random(seed), "train")

        graph = arm_of(config.team, agent_names(config.team.agents)).graph(playing.acting)
        # An emulator plays one episode at a time, whatever the settings say.
        most = environment.max_concurrency or settings.concurrency
        settings = dataclasses.replace(settings, concurrency=min(settings.concurrency, most))
        async with open_critics(config, playing.judging, playing.in_workers, run.folder) as critics:
            place = TrainingEnvironment(
                playing.environments, sample_jobs, critics.critic, settings.concurrency,
                critics.judge, critics.adversary, critics.teacher, max_steps=section.max_steps,
                edges=EdgeDistribution(graph, density=config.team.density)
                if settings.edges != "fixed" else None,
            )  # fmt: skip
            with display.bar("training", settings.iterations) as bar:
                result = await train(
                    run.folder, graph, place, settings, bar, log=log, warn=warn,
                    acting=playing.acting, processes=processes,
                )  # fmt: skip
    run.folder.set_status({"stage": "trained"})
    return result.history


def evaluation_settings(run: Run) -> dict[str, object]:
    """The settings that test the trained team, by name, where they differ from the defaults.

    They are those of the training, except that the replies are greedy, the episodes are those of
    the test, and no server acts.
    """
    config, learning, default = run.config, trainer_config(run.config), TeamSection()
    untested = ["actor", "actor_name", *OVER_NETWORK]
    if kind_of(config.model) != "local":
        untested.append("device")  # it was that of a learned critic
    edges: dict[str, Any] = {"edges": config.team.edges}
    if learning.edges == "learned":
        edges["edges"] = str(run.folder.path)
    if edges["edges"] != default.edges:
        edges |= {"density": default.density, "seed": default.seed}
    sections = {
        "environment": replace(
            config.environment,
            # The tasks of the test are others where the environment has splits.
            tasks=() if spec_of(config.environment.name).splits else config.environment.tasks,
            **_defaults(EnvironmentSection(), "split", "episodes", "seed", "suite_seed",
                        "combinations"),
        ),
        "model": replace(
            config.model,
            **_defaults(ModelSection(), *untested) | {"adapters": str(run.folder.adapters)},
        ),
        "team": replace(
            config.team, **_defaults(default, "temperature", "temperatures") | edges
        ),
    }  # fmt: skip
    found = {
        f"{section}.{name}": getattr(values, name)
        for section, values in sections.items()
        for name in values.__struct_fields__
        if changed(values, name)
    }
    return {"environment.name": config.environment.name, **found}


def _defaults(section: msgspec.Struct, *names: str) -> dict[str, Any]:
    return {name: getattr(section, name) for name in names}
