"""Stage 2 whose episodes are played here, or by the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from swarm_ui.experiment.config import Config, Finding
from swarm_ui.experiment.environments.spec import OpenEnvironment
from swarm_ui.experiment.live.worker_watch import WorkerWatch
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.placement.opened import opened_workers
from swarm_ui.experiment.placement.place import on_ray
from swarm_ui.experiment.training.actors import open_actor
from swarm_ui.experiment.training.roles import WorkerBase
from swarm_ui.optim.rollout_actors import RolloutActors
from swarm_ui.rollout.per_process import PerProcess
from swarm_ui.rollout.pool import MakeEnvironment

_PUBLISHED = "published"
"""The folder in a run that workers read new adapters from."""


class TrainingPlace(NamedTuple):
    """What plays the episodes of a training run."""

    environments: MakeEnvironment | RolloutActors
    acting: Any
    """The model of the agents."""
    judging: Any
    """The model of a critic that asks the agents' own."""
    in_workers: WorkerBase | None = None
    """``None``: this process plays."""


def ray_training_findings(config: Config) -> Iterator[Finding]:
    """Settings that training with workers of a cluster cannot use."""
    if not on_ray(config):
        return
    if config.model.actor:
        yield ("model", "actor"), ("the workers of a cluster act with the learner's adapters; "
                                   "leave --actor out, or --on")  # fmt: skip
    if config.ray.model_actors:
        yield ("ray", "model_actors"), ("in training each worker holds the model and its adapters; "
                                        "leave it out")  # fmt: skip


@asynccontextmanager
async def open_training_place(
    config: Config,
    learner: Any,
    run: Path,
    environment: OpenEnvironment,
    warn: Callable[[str], None],
) -> AsyncIterator[TrainingPlace]:
    """This process with ``environment``, or the workers of the cluster with their own.

    Args:
        config: the settings.
        learner: holds and trains the adapters.
        run: the directory of the run.
        environment: of this process.
        warn: called with one line when workers wait for resources or are lost.

    Raises:
        ConfigError: there is no such cluster, or the server of ``[model] actor`` is another one.
        ModelUnavailable: that server does not answer.
    """
    if not on_ray(config):
        async with open_actor(config.model, learner, run) as acting:
            yield TrainingPlace(environment.make, acting, learner)
        return
    with WorkerWatch(run, warn) as watch, opened_workers(config, watch) as rollouts:
        watch.shown("train")
        from swarm_ui.nodes.models.published_model import PublishedModel

        # The adapters to start from are published by the learner like all later versions.
        make = PerProcess(partial(load_in_process, replace(config.model, adapters="")))
        folder = run.resolve() / _PUBLISHED if config.ray.shared_folder else None
        model = PublishedModel(learner, make, folder)
        try:
            async with rollouts(config.environment, environment) as playing:
                in_workers = WorkerBase(learner.name, make)
                yield TrainingPlace(RolloutActors(playing, model), model, model, in_workers)
        finally:
            await model.close()
