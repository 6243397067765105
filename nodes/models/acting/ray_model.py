"""A model that is held by a Ray actor and asked from any process of the cluster.

model = await hold_model(partial(LocalModel.load, folder), gpus=0.5)
team = CollabGraph.collaborative(agents=4, rounds=2, model=model)
…                       # the team can be sent to workers; all of them ask the same actor
await model.close()     # ends the actor
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import Request
from swarm_ui.nodes.models.acting.published import Factory, HeldModel, ModelCopy
from swarm_ui.rollout.cluster import connected, imported, reason

_NEEDED_FOR = "a model held by an actor"
_CALLS = 10_000
"""Calls that an actor takes at the same time. They wait in the queue of the model."""
_PATIENCE = 300.0
"""Seconds to wait for room on a machine."""


class ActorLost(ModelUnavailable):
    """An actor or its node was lost, or cannot be reached."""


class Actor:
    """A Ray actor that holds a model: a :class:`~swarm_ui.nodes.models.acting.published.Place`.

    Limits and the budget of the model hold for all processes together. Ray restarts a lost actor,
    and repeats its calls; if it was lost too often, calls raise ``ModelUnavailable``.
    """

    def __init__(self, actor: Any, where: str, own: bool = True) -> None:
        """``own``: whether closing this object ends the actor."""
        self.actor, self._where, self._own = actor, where, own

    def __reduce__(self) -> tuple[Any, ...]:
        return Actor, (self.actor, self._where, False)

    async def ask(
        self, method: str, files: Mapping[Any, Any], requests: Sequence[Request], *others: object
    ) -> Any:
        """See :meth:`swarm_ui.nodes.models.acting.published.HeldModel.ask`."""
        ref = self.actor.ask.remote(method, files, requests, *others)
        return await answered(ref, self._where)

    async def used(self) -> tuple[int, int]:
        """Calls and tokens that the budget of the model counts."""
        found: tuple[int, int] = await answered(self.actor.used.remote(), self._where)
        return found

    async def close(self) -> None:
        """End the actor. In a process that this object was sent to, nothing happens."""
        if self._own:
            connected(_NEEDED_FOR).kill(self.actor)


async def hold_model(
    factory: Factory,
    *,
    gpus: float = 0.0,
    cpus: float = 1.0,
    restarts: int = 3,
) -> ModelCopy:
    """Start an actor that holds a model, and return the model that asks it.

    Args:
        factory: makes the model in the actor; it is sent there. Files that it reads must be on
            the machine of the actor.
        gpus, cpus: what Ray reserves; ``gpus`` may be a fraction.
        restarts: how often a lost actor is restarted.

    Returns:
        The model, which has no weights and can be sent to other processes. Close it in this one.

    Raises:
        ConfigError: this process is not connected to a cluster, the cluster has no room for the
            actor, or the model cannot be made.
        MissingExtra: Ray is not installed.
    """
    ray = connected(_NEEDED_FOR)
    needs = {"num_gpus": gpus, "num_cpus": cpus}
    kind = ray.remote(HeldModel).options(
        **needs, max_restarts=restarts, max_task_retries=restarts, max_concurrency=_CALLS
    )
    actor = kind.remote(factory)
    try:
        await asyncio.wait_for(answered(actor.ready.remote(), _NEEDED_FOR), _PATIENCE)
        name, scores, adapters = await answered(actor.about.remote(), _NEEDED_FOR)
    except BaseException as failure:  # nothing stays behind
        ray.kill(actor)
        if isinstance(failure, ActorLost):
            raise ConfigError(
                f"{_NEEDED_FOR}: its process could not be made; is the same code installed on "
                f"every machine? {failure}"
            ) from failure
        if isinstance(failure, TimeoutError):
            raise ConfigError(
                f"{_NEEDED_FOR}: expected room for {needs} within {_PATIENCE:g} s, got no room in "
                "the Ray cluster. Ask for less, or add machines"
            ) from None
        raise
    where = f"the model '{name}', which an actor holds"
    return ModelCopy(Actor(actor, where), name, scores, adapters, {})


async def answered(ref: Any, who: str) -> Any:
    """The result of a call of an actor (``who``, for errors). Cancelling this coroutine cancels the
    call. Raises :class:`ActorLost`, or what the call itself raised in the actor."""
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
        raise ActorLost(
            f"{who}, does not answer: {reason(error)}. See Ray's log of the actor, and raise "
            "'restarts' if machines are lost often"
        ) from error
