"""The model that the workers of a cluster act with while a learner in this process is trained.

The agents ask a server, actors that hold the model, or a copy of the model in each worker. All of
these get the learner's adapters by version.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swarm_ui.experiment.config import Config, Finding
from swarm_ui.experiment.placement.place import on_ray
from swarm_ui.experiment.placement.shared_model import model_actors, opened_in_actors
from swarm_ui.experiment.training.actors import open_actor

_PUBLISHED = "published"
"""The folder in a run that workers and actors read new adapters from."""


def acting_findings(config: Config) -> Iterator[Finding]:
    """Settings of the acting model that training with workers of a cluster cannot use."""
    if not (on_ray(config) and config.model.actor):
        return
    if config.ray.model_actors:
        yield ("ray", "model_actors"), ("a server acts (--actor), and no other process holds the "
                                        "model; leave one of them out")  # fmt: skip
    if config.team.vote == "probability":
        yield ("team", "vote"), ("while a server acts (--actor), workers of a cluster have no "
                                 "weights to compute probabilities; expected majority")  # fmt: skip


@asynccontextmanager
async def open_acting_model(
    config: Config, learner: Any, run: Path, base: Callable[[], Any]
) -> AsyncIterator[Any]:
    """The model of the agents in the workers, which publishes its adapters and can be sent to them.

    Args:
        config: the settings.
        learner: holds and trains the adapters.
        run: the directory of the run.
        base: returns the copy of the model without adapters that a worker holds.

    Raises:
        ConfigError: the server of ``[model] actor`` serves another model, or no machine has room
            for the actors.
        ModelUnavailable: that server does not answer.
    """
    async with AsyncExitStack() as stack:
        if config.model.actor:
            # Episodes of the iteration before play on while an update runs, but not longer.
            kept = 1 + int(config.train.get("overlap", False))
            acting = open_actor(config.model, learner, run, kept=kept, cluster=True)
            yield await stack.enter_async_context(acting)
            return
        from swarm_ui.nodes.models.acting.published_model import PublishedModel

        # The adapters to start from are published by the learner like all later versions.
        elsewhere: Any = base
        if model_actors(config):
            bare = replace(config, model=replace(config.model, adapters=""))
            elsewhere = await stack.enter_async_context(opened_in_actors(bare))
        folder = run.resolve() / _PUBLISHED if config.ray.shared_folder else None
        model = PublishedModel(learner, elsewhere, folder)
        stack.push_async_callback(model.close)
        yield model
