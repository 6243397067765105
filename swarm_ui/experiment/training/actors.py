"""A server that generates replies while a learner in this process is trained."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.addresses import without_credentials
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import ModelSection
from swarm_ui.experiment.models import endpoint_client
from swarm_ui.experiment.placement.spending import spending
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.nodes import OpenAIModel

_SERVED = "served"
"""The folder in a run that the server reads new adapters from."""


@asynccontextmanager
async def open_actor(
    section: ModelSection, learner: Any, run: Path, *, kept: int = 2, cluster: bool = False
) -> AsyncIterator[Any]:
    """The model of the agents in a training run: the learner, or the server of ``[model] actor``.

    Args:
        section: the choice.
        learner: holds and trains the adapters.
        run: the directory of the run, which the server can read; what its earlier processes spent
            counts in the budget.
        kept: published versions of each adapter that the server keeps.
        cluster: whether workers of a cluster ask the server too, within limits that hold for all
            of them together.

    Raises:
        ConfigError: the server serves several models, or a model other than the learner's.
        ModelUnavailable: it does not answer.
    """
    if not section.actor:
        yield learner
        return
    from swarm_ui.nodes.models.acting.actor_model import ActorModel

    engine = await _engine(section)
    async with AsyncExitStack() as stack:
        stack.enter_context(spending(engine, RunDirectory(run)))
        if cluster and engine.limited:
            from swarm_ui.nodes import share_limits

            stack.push_async_callback(share_limits(engine).close)
        model = ActorModel(engine, learner, run.resolve() / _SERVED, kept=kept)
        stack.push_async_callback(model.close)
        await model.check()
        yield model


async def check_actor(section: ModelSection) -> None:
    """Check that the server of ``[model] actor`` answers.

    Raises the errors of :func:`open_actor`.
    """
    await (await _engine(section)).close()


async def _engine(section: ModelSection) -> OpenAIModel:
    from swarm_ui.nodes import ChatOptions

    options = ChatOptions(logprobs=True, token_field=section.token_field, send_seed=True)
    engine = endpoint_client(section, section.actor_name or "the actor", section.actor, options)
    try:
        served = [model.name for model in await engine.served() if model.parent is None]
    finally:
        await engine.close()
    if section.actor_name in served:
        return engine
    if section.actor_name or len(served) != 1:
        wanted = f"'{section.actor_name}'" if section.actor_name else "one model"
        raise ConfigError(
            f"[model] actor: expected {wanted} at {without_credentials(section.actor)}, got "
            f"{', '.join(served) or 'none'}; name one of them with --set model.actor_name=NAME"
        )
    return endpoint_client(section, served[0], section.actor, options)
