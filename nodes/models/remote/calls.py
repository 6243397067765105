"""Calls of Ray actors, with the errors of this library."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra, ModelError, ModelUnavailable, brief

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FIELDS = ("class_name:", "actor_id:", "pid:", "namespace:", "ip:", "name:")


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
        raise ModelError(f"{who} failed: {_reason(error)}") from error
    except ray.exceptions.RayError as error:
        raise ActorLost(f"{who} does not answer: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """The text of an error of Ray in one line, without colours and the fields of the actor."""
    lines = [_COLOUR.sub("", line).strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(_FIELDS)]
    return brief(Exception(" ".join(told) or type(error).__name__))
