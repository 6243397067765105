"""A model that is held by a Ray actor and asked from any process of the cluster.

model = await hold_model(partial(LocalModel.load, folder), gpus=0.5)
team = CollabGraph.collaborative(agents=4, rounds=2, model=model)
…                       # the team can be sent to workers; all of them ask the same actor
await model.close()     # ends the actor
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Self

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import Request
from swarm_ui.nodes.models.acting.published import (
    About,
    Factory,
    Files,
    HeldModel,
    PublishedCopy,
    ScoringCopy,
)
from swarm_ui.rollout.cluster import connected, imported, reason

_NEEDED_FOR = "a model held by an actor"
_CALLS = 10_000
"""Calls that an actor takes at the same time. They wait in the queue of the model."""
_PATIENCE = 300.0
"""Seconds to wait for room on a machine."""


class ActorLost(ModelUnavailable):
    """An actor or its node was lost, or cannot be reached."""


class RayModel(PublishedCopy):
    """Asks the actor that holds a model; made by :func:`hold_model`.

    It is a :class:`~swarm_ui.model.ChatModel` and a :class:`~swarm_ui.model.VersionedModel`, and
    can be sent to other processes. It has no weights. Limits and the budget of the model hold for
    all processes together. Ray restarts a lost actor, and repeats its calls; if it was lost too
    often, calls raise ``ModelUnavailable``.
    """

    def __init__(
        self,
        actor: Any,
        about: About,
        current: Mapping[str, str] | None = None,
        files: Mapping[str, Files] | None = None,
    ) -> None:
        """``current``: version of each adapter; ``None``: those with which the model was loaded.
        ``files``: of versions that the actor may lack."""
        super().__init__(about.adapters if current is None else current)
        self.name = about.name
        self._actor, self._about, self._files = actor, about, files or {}
        self._where = f"the model '{about.name}', which an actor holds"
        self._own = True

    def __repr__(self) -> str:
        return f"RayModel({self._where})"

    def __getstate__(self) -> tuple[Any, ...]:
        return self._actor, self._about, self.current, self._files

    def __setstate__(self, sent: tuple[Any, ...]) -> None:
        RayModel.__init__(self, *sent)
        self._own = False

    def with_versions(self, current: Mapping[str, str], files: Mapping[str, Files]) -> Self:
        """The same actor, asked for these versions of the adapters, such as
        ``{"agent_2": "agent_2@7"}``. Closing this model does not end it."""
        other = type(self)(self._actor, self._about, current, files)
        other._own = False
        return other

    async def used(self) -> tuple[int, int]:
        """Calls and tokens that the budget of the model counts."""
        found: tuple[int, int] = await answered(self._actor.used.remote(), self._where)
        return found

    async def close(self) -> None:
        """End the actor. In a process that the model was sent to, nothing happens."""
        if self._own:
            connected(_NEEDED_FOR).kill(self._actor)

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        ref = self._actor.ask.remote(method, self._files, requests, *others)
        return await answered(ref, self._where)


class RayScoringModel(RayModel, ScoringCopy):
    """A held model that can also compute the probability of a given reply.

    It is a :class:`~swarm_ui.model.ScoringModel`.
    """


async def hold_model(
    factory: Factory,
    *,
    gpus: float = 0.0,
    cpus: float = 1.0,
    resources: Mapping[str, float] | None = None,
    restarts: int = 3,
) -> RayModel:
    """Start an actor that holds a model, and return the model that asks it.

    Args:
        factory: makes the model in the actor; it is sent there. Files that it reads must be on
            the machine of the actor.
        gpus, cpus, resources: what Ray reserves; ``gpus`` may be a fraction.
        restarts: how often a lost actor is restarted.

    Returns:
        The model; a :class:`RayScoringModel` if it has ``score``. Close it in this process.

    Raises:
        ConfigError: this process is not connected to a cluster, the cluster has no room for the
            actor, or the model cannot be made.
        MissingExtra: Ray is not installed.
    """
    ray = connected(_NEEDED_FOR)
    needs = {"num_gpus": gpus, "num_cpus": cpus, "resources": dict(resources or {})}
    kind = ray.remote(HeldModel).options(
        **needs, max_restarts=restarts, max_task_retries=restarts, max_concurrency=_CALLS
    )
    actor = kind.remote(factory)
    try:
        await asyncio.wait_for(answered(actor.ready.remote(), _NEEDED_FOR), _PATIENCE)
        about: About = await answered(actor.about.remote(), _NEEDED_FOR)
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
    return (RayScoringModel if about.scores else RayModel)(actor, about)


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
