"""Processes that play phone episodes of the base agent.

A second thread does not make a tiny network faster, so each core gets a process.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.long_lived import long_lived
from swarm_ui.experiment.models import silence_transformers
from swarm_ui.experiment.teams import Arm
from swarm_ui.rollout import Policy, Rollouts, processes

if TYPE_CHECKING:
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

SLOTS = 64
"""Episodes of a process at the same time: enough to fill the batches of the model."""
_PRELOADED = (__name__, "swarm_ui.nodes.models.tiny_agent.local_model")
_KEPT_MODELS = 4
"""Models that a process keeps for further policies; loading adapters takes a third of a second."""


def phone_workers(count: int) -> Rollouts:
    """Rollouts on the phone in so many processes; enter them with ``async with``."""
    return processes.process_rollouts(
        PhoneEnvironment, workers=count, slots=SLOTS, preload=_PRELOADED
    )


def import_ahead() -> None:
    """Let the imports of the processes, which take seconds, begin while this process does other
    work."""
    processes.import_ahead(_PRELOADED)


def policy_of(arm: Arm, agent: str, adapters: str | None) -> Policy:
    """The policy of an arm, made in a worker.

    Args:
        arm: one policy.
        agent: folder of the agent.
        adapters: folder of the trained adapters.
    """
    return arm.policy(_model(agent, adapters))


@lru_cache(maxsize=_KEPT_MODELS)
def _model(agent: str, adapters: str | None) -> LocalModel:
    with long_lived():  # with the imports of the fork server
        import torch

        from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel

        torch.set_num_threads(1)
        silence_transformers()
    model = LocalModel.load(Path(agent))
    if adapters is not None:
        model.load_adapters(Path(adapters))
    return model
