"""Stage 2 whose episodes are played here, or by the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from swarm_ui.experiment.config import Config
from swarm_ui.experiment.environments.spec import OpenEnvironment
from swarm_ui.experiment.models import model_of_process
from swarm_ui.experiment.placement.opened import opened_workers
from swarm_ui.experiment.placement.place import on_ray
from swarm_ui.experiment.training.acting_models import open_acting_model
from swarm_ui.experiment.training.actors import open_actor
from swarm_ui.experiment.training.roles import WorkerBase
from swarm_ui.rollout import MakeEnvironment, Rollouts


class TrainingPlace(NamedTuple):
    """The models and environments for the rollouts of a training run."""

    environments: MakeEnvironment | Rollouts
    acting: Any
    """The model of the agents."""
    judging: Any
    """The model of a critic that asks the agents' own."""
    in_workers: WorkerBase | None = None
    """The base model that workers hold for the critic; ``None``: this process plays."""


@asynccontextmanager
async def open_training_place(
    config: Config,
    learner: Any,
    run: Path,
    environment: OpenEnvironment,
    warn: Callable[[str], None],
) -> AsyncIterator[TrainingPlace]:
    """Where training episodes are played: this process with ``environment``, or the workers of the
    cluster with environments of their own.

    Args:
        config: the settings.
        learner: holds and trains the adapters.
        run: the directory of the run.
        environment: the environment of this process.
        warn: called with one line when workers wait for resources or are lost.

    Raises:
        ConfigError: there is no such cluster, it has no room, or the server of ``[model] actor``
            serves another model.
        ModelUnavailable: that server does not answer.
    """
    if not on_ray(config):
        async with open_actor(config.model, learner, run) as acting:
            yield TrainingPlace(environment.make, acting, learner)
        return
    with opened_workers(config, warn) as rollouts:
        # Of the agents, and of a learned critic, in a worker that needs one of them.
        base = replace(config.model, adapters="")
        async with (
            open_acting_model(config, learner, run, partial(model_of_process, base)) as model,
            rollouts(config.environment, environment) as playing,
        ):
            in_workers = WorkerBase(learner.name, base)
            yield TrainingPlace(playing, model, model, in_workers)
