"""The model of a run on a cluster, where all workers ask the same one.

The workers ask an endpoint themselves, within limits that hold for all of them together. A model
that runs in a process is held by actors, or each worker loads its own copy.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swarm_ui.experiment.config import Config, ModelSection
from swarm_ui.experiment.models import kind_of, made_model, open_model
from swarm_ui.experiment.placement.spending import spending
from swarm_ui.model import ChatModel
from swarm_ui.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from swarm_ui.nodes.models.acting import RayModel

OWN = ("base", "agent")
"""Kinds of models that each worker loads for itself by default: they are small and answer faster
than an actor could be asked by many."""


def model_actors(config: Config) -> int:
    """The number of actors that hold the model; 0 if each worker opens the model itself."""
    given, kind = config.ray.model_actors, kind_of(config.model)
    if kind == "endpoint":
        return 0
    return given if given is not None else int(kind not in OWN)


@asynccontextmanager
async def open_shared_model(
    config: Config, run: RunDirectory | None = None
) -> AsyncIterator[ChatModel | None]:
    """The model that is sent to all workers, or ``None`` if each worker opens its own.

    ``run``: the folder of the run, whose earlier calls count in the budget of the model.

    Raises:
        ConfigError: the model cannot be made, or no machine has room for it.
        ModelError: the endpoint does not answer, or does not serve the model.
    """
    actors = model_actors(config)
    async with AsyncExitStack() as stack:
        if kind_of(config.model) == "endpoint":
            # The client takes longer to import than all that other commands need.
            from swarm_ui.nodes.models.openai.model import OpenAIModel

            model = await stack.enter_async_context(open_model(config.model))
            if run is not None:
                stack.enter_context(spending(model, run))
            if isinstance(model, OpenAIModel) and model.limited:
                from swarm_ui.nodes import share_limits

                stack.push_async_callback(share_limits(model).close)
            yield model
        elif actors:
            yield await stack.enter_async_context(opened_in_actors(config))
        else:
            yield None


@asynccontextmanager
async def opened_in_actors(config: Config) -> AsyncIterator[RayModel]:
    """The model of this process, held by :func:`model_actors` actors, which end with the block.

    Raises:
        ConfigError: the model cannot be made, or no machine has room for it.
    """
    from swarm_ui.nodes import hold_model

    section, gpus = config.model, config.ray.gpus_per_model
    if gpus and section.device == "cpu":
        section = replace(section, device="cuda")
    # An actor without a GPU reserves no CPU: it computes while workers wait for it.
    held = await hold_model(
        partial(made_in, os.getcwd(), section),
        replicas=model_actors(config), gpus=gpus, cpus=0.0,
    )  # fmt: skip
    try:
        yield held
    finally:
        await held.close()


def made_in(folder: str, section: ModelSection) -> ChatModel:
    """The model of an actor. Its relative paths start in the driver's working directory."""
    if os.path.isdir(folder):
        os.chdir(folder)
    model: ChatModel = made_model(section)
    return model
