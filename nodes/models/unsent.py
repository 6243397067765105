"""The error for models that cannot be sent to other processes."""

from __future__ import annotations

from swarm_ui.errors import ConfigError


def not_sent(what: str) -> ConfigError:
    """The error for a model whose weights are in this process."""
    return ConfigError(
        f"{what} runs in this process; it can be neither pickled nor copied, and its weights are "
        "not sent to other processes. For a second one, load it again. For workers, hold it in an "
        "actor that all workers ask: hold_model(factory) of swarm_ui.nodes; or "
        "give a factory, so that each worker loads its own: PerWorker of swarm_ui.rollout"
    )
