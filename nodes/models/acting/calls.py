"""Calls of Ray actors, with the errors of this library."""

from __future__ import annotations

import asyncio
from typing import Any

from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.rollout.cluster import imported, reason


class ActorLost(ModelUnavailable):
    """An actor or its node was lost, or cannot be reached."""


async def answered(ref: Any, who: str) -> Any:
    """The result of a call of an actor. Cancelling this coroutine cancels the call.

    Args:
        ref: Ray's reference to the result.
        who: the actor, for errors.

    Raises:
        ActorLost: the actor or its node was lost, or cannot be reached.
        Exception: the exception that the call itself raised in the actor.
    """
    ray = imported()
    try:
        return await ref
    except asyncio.CancelledError:
        ray.cancel(ref)
        raise
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, Exception):
            raise cause from None
        raise ModelError(f"{who} failed: {reason(error)}") from error
    except ray.exceptions.RayError as error:
        raise ActorLost(f"{who} does not answer: {reason(error)}") from error
