"""Opens what plays the episodes of a configuration, here or on a cluster.

On a cluster, each worker opens the environment from the same settings as this process would, and
the model too, unless all workers ask the same one
(:mod:`swarm_ui.experiment.placement.shared_model`).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from swarm_ui.experiment.config import Config, EnvironmentSection, ModelSection, TeamSection
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.environments.spec import OpenEnvironment
from swarm_ui.experiment.models import adapter_names, open_model
from swarm_ui.experiment.placement.place import on_ray, ray_address
from swarm_ui.experiment.placement.shared_model import open_shared_model
from swarm_ui.experiment.placement.spending import spending
from swarm_ui.experiment.teams import Arm, arm_of
from swarm_ui.graph.topology import Edge
from swarm_ui.rollout import (
    Acting,
    LocalWorker,
    MakeEnvironment,
    PerWorker,
    Policy,
    Rollouts,
    WorkerResources,
    ray_cluster,
    ray_rollouts,
)
from swarm_ui.storage.run_directory import RunDirectory

OpenRollouts = Callable[[EnvironmentSection, OpenEnvironment], Rollouts]


@dataclass(frozen=True, slots=True)
class Placement:
    """The policy and the rollouts of a run, local or on a cluster."""

    arm: Arm
    policy: Acting | PerWorker[Acting]
    rollouts: OpenRollouts
    """Plays in the open environments of this process, or in those of the workers. Enter it with
    ``async with``."""


@asynccontextmanager
async def opened_placement(
    config: Config, model: Any, warn: Callable[[str], None], run: RunDirectory
) -> AsyncIterator[Placement]:
    """Open the local pool, or the workers of a cluster, as the configuration says.

    Args:
        config: the settings.
        model: a model that this process has already loaded; ``None``: each process opens its own.
        warn: called with one line when a worker of a cluster waits for resources or is lost.
        run: the folder of the run, whose earlier calls count in the budget of the model.

    Raises:
        ConfigError: there is no such cluster or no such model.
        ModelError: the endpoint does not answer, or does not serve the model.
    """
    adapters = tuple(adapter_names(config.model, config.team.agents))
    spec = spec_of(config.environment.name)
    if not on_ray(config):

        def local(section: EnvironmentSection, environment: OpenEnvironment) -> Rollouts:
            most = environment.max_concurrency or config.run.concurrency
            at_once = min(config.run.concurrency, most)
            return Rollouts([LocalWorker(environment.make, slots=at_once)])

        async with open_model(config.model, model) as answering:
            arm = arm_of(config.team, adapters, model=answering.name)
            with spending(answering, run):
                yield Placement(arm, spec.policy(arm, answering), local)
        return
    with opened_workers(config, warn) as rollouts:
        async with open_shared_model(config, run) as shared:
            arm = arm_of(config.team, adapters, model=(shared or config.model).name)
            policy: Acting | PerWorker[Acting] = PerWorker(
                partial(open_policy, config.model, config.team, adapters, arm.edges, spec.name)
            )
            if shared is not None:
                policy = spec.policy(arm, shared)
            yield Placement(arm, policy, rollouts)


@contextmanager
def opened_workers(config: Config, warn: Callable[[str], None]) -> Iterator[OpenRollouts]:
    """The workers of the cluster that the configuration names. Arguments and errors are those of
    :func:`opened_placement`."""
    ray, counted = config.ray, _counted(config)

    def remote(section: EnvironmentSection, environment: OpenEnvironment) -> Rollouts:
        return ray_rollouts(
            PerWorker(partial(open_environments, section)),
            workers=ray.workers,
            slots=min(ray.episodes, environment.max_concurrency or ray.episodes),
            resources=WorkerResources(cpus=ray.cpus, gpus=ray.gpus, custom=counted),
            warn=warn,
        )

    # A local cluster has as many of each counted thing as it has workers.
    count = float(ray.workers or os.cpu_count() or 1)
    with ray_cluster(
        ray_address(config), cpus=ray.workers and max(1, ceil(count * ray.cpus)),
        resources={name: amount * count for name, amount in counted.items()},
    ):  # fmt: skip
        yield remote


@asynccontextmanager
async def open_policy(
    model: ModelSection,
    team: TeamSection,
    adapters: tuple[str | None, ...],
    edges: tuple[Edge, ...],
    environment: str,
) -> AsyncIterator[Policy]:
    """The policy of a worker in the named environment. The worker opens its own model, and reads
    the files on its machine."""
    async with open_model(model) as answering:
        arm = arm_of(team, adapters, model=answering.name, edges=edges)
        yield spec_of(environment).policy(arm, answering)


@asynccontextmanager
async def open_environments(section: EnvironmentSection) -> AsyncIterator[MakeEnvironment]:
    """Open the environments of a worker, which have resources of their own, such as a browser."""
    async with spec_of(section.name).opened(section) as environment:
        yield environment.make


def _counted(config: Config) -> dict[str, float]:
    """The custom resources of a worker, such as an emulator."""
    if config.ray.resources is not None:
        return dict(config.ray.resources)
    name = spec_of(config.environment.name).resource
    return {name: 1.0} if name else {}
