"""Where the episodes of a training are played, and the model that acts in them.

The learner in this process acts itself; or a server acts with its adapters; or, in workers of a
cluster, an actor or a copy in each worker do. All of these get the learner's adapters by version.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm_ui.addresses import without_credentials
from swarm_ui.environments.benchmark import Opened
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Config, Ray
from swarm_ui.experiment.model_settings import Actor, Agent, Language
from swarm_ui.experiment.models import endpoint_client, model_of_process
from swarm_ui.experiment.place import has_model_actor, opened_in_actor, opened_workers
from swarm_ui.experiment.spending import spending
from swarm_ui.rollout import MakeEnvironment, Rollouts
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.nodes import OpenAIModel

_SERVED = "served"
"""Folder in a run that a server reads new adapters from."""


class TrainingPlace(NamedTuple):
    """The models and environments for the rollouts of a training."""

    environments: MakeEnvironment | Rollouts
    acting: Any
    """The model of the agents."""
    judging: Any
    """The model of a critic that asks the agents' own."""
    in_workers: Agent | Language | None = None
    """The agents' base model in workers; ``None``: this process plays."""


@asynccontextmanager
async def open_training_place(
    config: Config, learner: Any, run: Path, environment: Opened, warn: Callable[[str], None]
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
        ConfigError: there is no such cluster, it has no room, or the server that acts serves
            another model.
        ModelUnavailable: that server does not answer.
    """
    actor = getattr(config.model, "actor", None)
    if not isinstance(config.place, Ray):
        async with open_actor(actor, learner, run) as acting:
            yield TrainingPlace(environment.make, acting, learner)
        return
    with opened_workers(config.env, config.place, warn) as rollouts:
        # Of the agents, and of a learned critic, in a worker that needs one of them.
        base = config.model.model_copy(update={"adapters": ""})
        assert isinstance(base, Agent | Language)
        split = config.env.training_split()
        async with (
            _acting_in_workers(config, actor, learner, run, base) as model,
            rollouts(split, environment) as playing,
        ):
            yield TrainingPlace(playing, model, model, base)


@asynccontextmanager
async def _acting_in_workers(
    config: Config, actor: Actor | None, learner: Any, run: Path, base: Agent | Language
) -> AsyncIterator[Any]:
    """The model of the agents in the workers, which publishes its adapters and can be sent to
    them."""
    assert isinstance(config.place, Ray)
    async with AsyncExitStack() as stack:
        if actor is not None:
            acting = open_actor(actor, learner, run, cluster=True)
            yield await stack.enter_async_context(acting)
            return
        from swarm_ui.nodes import PublishedModel

        # The adapters to start from are published by the learner like all later versions.
        elsewhere: Any = partial(model_of_process, base)
        if has_model_actor(config):
            bare = config.model_copy(update={"model": base})
            elsewhere = await stack.enter_async_context(opened_in_actor(bare))
        model = PublishedModel(learner, elsewhere)
        stack.push_async_callback(model.close)
        yield model


@asynccontextmanager
async def open_actor(
    section: Actor | None, learner: Any, run: Path, *, cluster: bool = False
) -> AsyncIterator[Any]:
    """The model of the agents: the learner, or a server that acts for it.

    Args:
        section: the server; ``None``: the learner acts.
        learner: holds and trains the adapters.
        run: the directory of the run, which the server can read; what its earlier processes spent
            counts in the budget.
        cluster: whether workers of a cluster ask the server too.

    Raises:
        ConfigError: the server serves several models, or a model other than the learner's; or a
            limit is set that each process of a cluster would count for itself.
        ModelUnavailable: it does not answer.
    """
    if section is None:
        yield learner
        return
    from swarm_ui.nodes.models.acting.actor_model import ActorModel

    engine = await _engine(section)
    if cluster and engine.limited:
        raise ConfigError(
            "model.actor: max_calls, max_tokens_total and rate_limit hold for one process, and on "
            "Ray each worker asks the server itself; leave them out, or use --on local"
        )
    async with AsyncExitStack() as stack:
        stack.enter_context(spending(engine, RunDirectory(run)))
        model = ActorModel(engine, learner, run.resolve() / _SERVED, kept=1)
        stack.push_async_callback(model.close)
        await model.check()
        yield model


async def check_actor(section: Actor) -> None:
    """Check that the server that acts answers. Raises the errors of :func:`open_actor`."""
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
