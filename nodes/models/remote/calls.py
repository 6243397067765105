"""Calls of Ray actors, with the errors of this library."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra, ModelError, ModelUnavailable


def connected_ray(needed_for: str) -> Any:
    """The module ``ray``, connected to a cluster.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: this process is not connected to a cluster.
    """
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise MissingExtra("ray", needed_for, error.name or "ray") from error
    if not ray.is_initialized():
        raise ConfigError(
            f"{needed_for} needs a Ray cluster, and this process is connected to none. "
            "Use it inside: with ray_cluster(): (swarm_ui.rollout.distributed), or after ray.init()"
        )
    return ray


class ActorLost(ModelUnavailable):
    """An actor or its node was lost, or cannot be reached."""


async def answered(ref: Any, who: str) -> Any:
    """The result of a call of an actor. The call is cancelled if this is.

    Args:
        ref: Ray's reference to the result.
        who: the actor, for errors.

    Raises:
        ActorLost: the actor or its node was lost, or cannot be reached.
        Exception: what the call itself raised, as it was raised there.
    """
    ray: Any = import_module("ray")
    try:
        return await ref
    except asyncio.CancelledError:
        ray.cancel(ref)
        raise
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, Exception):
            raise cause from None
        raise ModelError(f"{who} failed: {_first_line(error)}") from error
    except ray.exceptions.RayError as error:
        raise ActorLost(
            f"{who} does not answer: {type(error).__name__}: {_first_line(error)}"
        ) from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else "no reason is known"
