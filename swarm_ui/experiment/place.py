"""Where episodes are played, and by which model: in this process, or in workers of a Ray cluster.

On a cluster, each worker opens the environment from the same settings as this process would, and
the model too, unless all workers ask the same one: an endpoint, within limits that hold for all of
them together, or an actor that holds the model. In a training, the learner in this process acts
itself; or a server, an actor or a copy in each worker gets its adapters by version, and acts.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import cache, partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm_ui.addresses import without_credentials
from swarm_ui.budget import Budget
from swarm_ui.environments.benchmark import Benchmark, Opened
from swarm_ui.errors import ConfigError, ModelUnavailable
from swarm_ui.experiment.benchmarks import opened
from swarm_ui.experiment.config import Config, FilledTeam, Local, Ray
from swarm_ui.experiment.model_settings import Actor, Agent, AnyModel, Endpoint, Language
from swarm_ui.experiment.models import (
    adapter_names,
    endpoint_client,
    endpoint_model,
    made_model,
    model_of_process,
    open_model,
)
from swarm_ui.experiment.stored import spending
from swarm_ui.experiment.teams import configured_edges, policy_in
from swarm_ui.message import Usage
from swarm_ui.model import ChatModel
from swarm_ui.rollout import (
    Acting,
    Decide,
    LocalWorker,
    MakeEnvironment,
    Policy,
    Rollouts,
    ray_cluster,
    ray_rollouts,
)
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.topology import Edge

if TYPE_CHECKING:
    from swarm_ui.nodes import OpenAIModel
    from swarm_ui.nodes.models.acting.published import ModelCopy

OpenRollouts = Callable[[str, Opened], Rollouts]
"""``(split, opened) -> rollouts``: plays in the open environments of this process, or in those of
the workers. Enter it with ``async with``."""
_SERVED = "served"
"""Folder in a run that a server reads new adapters from."""


class Placement(NamedTuple):
    """The policy and the rollouts of an evaluation."""

    policy: Acting
    rollouts: OpenRollouts


@asynccontextmanager
async def opened_placement(
    config: Config, team: FilledTeam, model: Any, warn: Callable[[str], None], run: RunDirectory
) -> AsyncIterator[Placement]:
    """Open the local pool, or the workers of a cluster.

    ``model``: one that this process has already loaded. ``warn`` is called with one line when a
    worker waits for resources or is lost. Earlier calls of the ``run`` count in the budget. Raises
    ``ConfigError`` and ``ModelError``."""
    adapters = tuple(adapter_names(config.model, team.agents))
    if isinstance(config.place, Local):
        asked = config.place.concurrency

        def local(split: str, environment: Opened) -> Rollouts:
            slots = min(asked, environment.max_concurrency or asked)
            return Rollouts([LocalWorker(environment.make, slots=slots)])

        async with open_model(config.model, model) as answering:
            with spending(answering, run):
                yield Placement(policy_in(config.env, team, answering, adapters), local)
        return
    with opened_workers(config.env, config.place, warn) as rollouts:
        async with open_shared_model(config, run) as shared:
            policy: Acting
            if shared is not None:
                policy = policy_in(config.env, team, shared, adapters)
            else:
                given = config.model, team, adapters, configured_edges(team), config.env
                policy = _PolicyOfWorker(*given)
            yield Placement(policy, rollouts)


@contextmanager
def opened_workers(
    env: Benchmark, place: Ray, warn: Callable[[str], None]
) -> Iterator[OpenRollouts]:
    """The workers of a cluster. Errors: see :func:`opened_placement`."""
    counted = {env.resource: 1.0} if env.resource else {}
    if place.resources is not None:
        counted = dict(place.resources)

    def remote(split: str, environment: Opened) -> Rollouts:
        return ray_rollouts(
            partial(_open_environments, env, split),
            workers=place.workers,
            slots=min(place.episodes, environment.max_concurrency or place.episodes),
            resources={"CPU": place.cpus, "GPU": place.gpus, **counted},
            warn=warn,
        )

    # A local cluster has as many of each counted thing as it has workers.
    count = float(place.workers or os.cpu_count() or 1)
    with ray_cluster(
        place.address, cpus=place.workers and max(1, ceil(count * place.cpus)),
        resources={name: amount * count for name, amount in counted.items()},
    ):  # fmt: skip
        yield remote


class _PolicyOfWorker:
    """Stands for the policy that each worker makes with its own model, once: it arrives there as
    this policy."""

    name = ""

    def __init__(self, *given: Any) -> None:
        self._given = given

    def begin(self, *, task: str, seed: int) -> Decide:
        return _policy_of_worker(*self._given).begin(task=task, seed=seed)

    def __reduce__(self) -> tuple[Any, ...]:
        return _policy_of_worker, self._given


@cache
def _policy_of_worker(
    model: AnyModel,
    team: FilledTeam,
    adapters: tuple[str | None, ...],
    edges: tuple[Edge, ...],
    env: Benchmark,
) -> Policy:
    """The policy of a process, with its own model. It reads the files on its machine."""
    return policy_in(env, team, made_model(model), adapters, edges)


@asynccontextmanager
async def _open_environments(env: Benchmark, split: str) -> AsyncIterator[MakeEnvironment]:
    """The environments of a worker, which have resources of their own, such as a browser."""
    async with opened(env, split) as environment:
        yield environment.make


class TrainingPlace(NamedTuple):
    """The models and environments for the rollouts of a training."""

    environments: MakeEnvironment | Rollouts
    acting: Any
    """The model of the agents."""
    judging: Any
    """The model of a critic that asks the agents' own."""


@asynccontextmanager
async def open_training_place(
    config: Config, learner: Any, run: Path, environment: Opened, warn: Callable[[str], None]
) -> AsyncIterator[TrainingPlace]:
    """Where training episodes are played: this process with ``environment``, or the workers of the
    cluster with environments of their own.

    ``learner`` holds and trains the adapters. Raises ``ConfigError`` if there is no such cluster,
    or the server that acts serves another model."""
    actor = getattr(config.model, "actor", None)
    if not isinstance(config.place, Ray):
        if actor is None:
            yield TrainingPlace(environment.make, learner, learner)
            return
        async with _server(actor, learner, run) as acting:
            yield TrainingPlace(environment.make, acting, learner)
        return
    with opened_workers(config.env, config.place, warn) as rollouts:
        base = config.model.model_copy(update={"adapters": ""})
        assert isinstance(base, Agent | Language)
        async with AsyncExitStack() as stack:
            if actor is not None:
                asked = _server(actor, learner, run, cluster=True)
                model: Any = await stack.enter_async_context(asked)
            else:
                from swarm_ui.nodes import PublishedModel

                # The adapters to start from are published by the learner like all later versions.
                elsewhere: Any = partial(model_of_process, base)
                if has_model_actor(config):
                    bare = config.model_copy(update={"model": base})
                    elsewhere = await stack.enter_async_context(_held(bare))
                model = PublishedModel(learner, elsewhere)
                stack.push_async_callback(model.close)
            playing = rollouts(config.env.training_split(), environment)
            await stack.enter_async_context(playing)
            yield TrainingPlace(playing, model, model)


@asynccontextmanager
async def _server(
    section: Actor, learner: Any, run: Path, *, cluster: bool = False
) -> AsyncIterator[Any]:
    """A server that acts for the learner, and reads new adapters from the folder of the run.

    ``cluster``: workers ask it too; limits, which each would count for itself, are refused."""
    from swarm_ui.nodes.models.acting.actor_model import ActorModel

    engine = await _engine(section)
    if cluster and engine.limited:
        raise ConfigError("model.actor: its limits hold for one process, and on Ray each worker "
                          "asks the server itself; leave them out, or use --on local")  # fmt: skip
    async with AsyncExitStack() as stack:
        stack.enter_context(spending(engine, RunDirectory(run)))
        model = ActorModel(engine, learner, run.resolve() / _SERVED)
        stack.push_async_callback(model.close)
        await model.check()
        yield model


async def check_actor(section: Actor) -> None:
    """Check that the server that acts for a learner answers, and serves one model."""
    await (await _engine(section)).close()


async def _engine(section: Actor) -> OpenAIModel:
    from swarm_ui.nodes import ChatOptions

    options = ChatOptions(logprobs=True, token_field=section.token_field, send_seed=True)
    engine = endpoint_client(section, section.name or "the actor", section.url, options)
    try:
        served = [model.name for model in await engine.served() if model.parent is None]
    finally:
        await engine.close()
    if section.name in served:
        return engine
    if section.name or len(served) != 1:
        wanted = f"'{section.name}'" if section.name else "one model"
        raise ConfigError(
            f"model.actor: expected {wanted} at {without_credentials(section.url)}, got "
            f"{', '.join(served) or 'none'}; name one of them with model.actor.name=NAME"
        )
    return endpoint_client(section, served[0], section.url, options)


def has_model_actor(config: Config) -> bool:
    """Whether an actor holds the model for all workers of a cluster. Embedded agents answer faster
    than an actor could be asked by many."""
    if isinstance(config.model, Endpoint) or not isinstance(config.place, Ray):
        return False
    given = config.place.model_actor
    return given if given is not None else not isinstance(config.model, Agent)


@asynccontextmanager
async def open_shared_model(
    config: Config, run: RunDirectory | None = None
) -> AsyncIterator[ChatModel | None]:
    """The model that is sent to all workers, or ``None`` if each worker opens its own."""
    async with AsyncExitStack() as stack:
        if isinstance(config.model, Endpoint):
            model: Any = await stack.enter_async_context(open_model(config.model))
            if model.limited:
                if run is not None:
                    stack.enter_context(spending(model, run))
                model = await stack.enter_async_context(_counted(config.model, model.budget))
            yield model
        elif has_model_actor(config):
            yield await stack.enter_async_context(_held(config))
        else:
            yield None


@asynccontextmanager
async def _counted(section: Endpoint, budget: Budget) -> AsyncIterator[ModelCopy]:
    """A model at an endpoint in one actor, which all workers ask, so that its limits hold for all
    of them together. What ``budget`` has counted counts; afterwards it counts their calls too."""
    from swarm_ui.nodes import hold_model

    spent = budget.calls, budget.tokens
    held = await hold_model(partial(_client, section, *spent), cpus=0.0, restarts=0)
    try:
        yield held
    finally:
        with suppress(ModelUnavailable):  # the actor is lost
            calls, tokens = await held.place.used()
            budget.count(Usage(prompt_tokens=tokens - spent[1]), calls - spent[0])
        await held.close()


def _client(section: Endpoint, calls: int, tokens: int) -> ChatModel:
    model = endpoint_model(section)
    model.budget.count(Usage(prompt_tokens=tokens), calls)
    return model


@asynccontextmanager
async def _held(config: Config) -> AsyncIterator[ModelCopy]:
    """The model of this process, held by an actor, which ends with the block."""
    from swarm_ui.nodes import hold_model

    assert isinstance(config.place, Ray)
    section, gpus = config.model, config.place.gpus_per_model
    if gpus and isinstance(section, Language) and section.device == "cpu":
        section = section.model_copy(update={"device": "cuda"})
    # An actor without a GPU reserves no CPU: it computes while workers wait for it.
    held = await hold_model(partial(_made_in, os.getcwd(), section), gpus=gpus, cpus=0.0)
    try:
        yield held
    finally:
        await held.close()


def _made_in(folder: str, section: AnyModel) -> ChatModel:
    """The model of an actor. Its relative paths start in the driver's working directory."""
    if os.path.isdir(folder):
        os.chdir(folder)
    model: ChatModel = made_model(section)
    return model
