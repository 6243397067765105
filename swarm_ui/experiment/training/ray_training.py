"""Stage 2 whose episodes are played by the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from swarm_ui.experiment.config import Config, Finding, ModelSection
from swarm_ui.experiment.models import load_in_process
from swarm_ui.experiment.training.roles import critic_kind

_PUBLISHED = "published"
"""The folder in a run that workers read new adapters from."""


def ray_training_findings(config: Config) -> Iterator[Finding]:
    """Settings that training with workers of a cluster cannot use."""
    if config.model.actor:
        yield ("model", "actor"), ("the workers of a cluster act with the learner's adapters; "
                                   "leave --actor out, or --on")  # fmt: skip
    if "learned" in (critic_kind(config), config.critic.judge):
        yield ("critic", "kind"), ("a learned critic is a model of this process and cannot be sent "
                                   "to workers; expected scripted, llm or outcome")  # fmt: skip


@asynccontextmanager
async def open_published(
    section: ModelSection, learner: Any, run: Path, *, folder: bool
) -> AsyncIterator[Any]:
    """The model of the agents in a training run with workers: the learner's adapters by version.

    Args:
        section: the choice; workers load the same model.
        learner: holds and trains the adapters.
        run: the directory of the run.
        folder: whether adapters are published in a folder of the run, which all machines see under
            the same path. If not, they are sent through Ray's object store.
    """
    from swarm_ui.nodes.models.published_model import PublishedModel

    # The adapters to start from are published by the learner like all later versions.
    make = partial(load_in_process, replace(section, adapters=""))
    model = PublishedModel(learner, make, run.resolve() / _PUBLISHED if folder else None)
    try:
        yield model
    finally:
        await model.close()
