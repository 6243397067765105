"""The beginning of a run: what it needs is there, then its directory is created."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from swarm_ui.experiment.config import plain
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.models import kind_of, open_model
from swarm_ui.experiment.plugins.run_loggers import check_loggers
from swarm_ui.experiment.plugins.wrapping import check_users_wrappers
from swarm_ui.experiment.runs.playing import trials_of
from swarm_ui.experiment.runs.run_settings import Run, open_environment
from swarm_ui.nodes import model_folder
from swarm_ui.storage.run_directory import RunDirectory


async def begin(run: Run) -> Run:
    """Create the directory of a run, after checking that its model and environment are available.

    Raises:
        ModelError: the endpoint does not answer, or does not serve the model.
        EnvironmentFault: no emulator answers.
        ConfigError: the environment cannot be made, or the model cannot be trained.
    """
    config, kind = run.config, kind_of(run.config.model)
    document: dict[str, object] = {"made_by": "swarm-ui", "command": run.command}
    if kind == "local":
        model_folder(config.model.name)  # downloads a model of the hub
    if kind == "endpoint":
        async with open_model(config.model):
            pass
    await check_code(run)
    if run.command == "train":
        if config.model.actor:
            from swarm_ui.experiment.training.actors import check_actor

            await check_actor(config.model)
    else:
        if spec_of(config.environment.name).known_tasks is None:  # the others were checked before
            for split in run.splits:
                await trials_of(run, split)
        document |= {"splits": run.splits, "seeds": run.seeds}
    directory = RunDirectory.create(
        Path(config.run.out) if config.run.out else None,
        name=f"{run.command}-{config.environment.name.partition(':')[0]}",
        config={**document, **plain(config)},
    )
    return dataclasses.replace(run, directory=directory)


async def check_code(run: Run) -> None:
    """Make the model of the user, and the environment if the user trains in it or wraps it.

    In other cases the environment is made when its episodes begin; see :func:`trials_of`.

    Raises:
        ConfigError: one cannot be made, the environment has no such task, or a logger cannot be
            imported.
        EnvironmentFault: it cannot list its tasks.
    """
    config = run.config
    check_loggers(config.run.log)
    if kind_of(config.model) == "code":
        async with open_model(config.model):
            pass
    spec = spec_of(config.environment.name)
    wraps = check_users_wrappers(config.environment.wrap)
    if wraps or (spec.by_user and run.command == "train"):
        async with open_environment(config.environment) as environment:
            if wraps:
                async with environment.one():
                    pass
            if spec.by_user and run.command == "train":
                await spec.task_names(config.environment, environment)


def discard_if_unused(run: Run) -> None:
    """Delete the directory of a run that has begun, if it holds nothing but its settings."""
    if run.folder.remove_if_unused() and not run.config.run.out:
        with contextlib.suppress(OSError):  # other runs are in it
            run.folder.path.parent.rmdir()
