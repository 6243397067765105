"""A model that is held by Ray actors and asked from any process of the cluster.

model = await hold_model(partial(LocalModel.load, folder), gpus=0.5, replicas=2)
team = CollabGraph.collaborative(agents=4, rounds=2, model=model)
…                       # the team can be sent to workers; all of them ask the same actors
await model.close()     # ends the actors
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import (
    ChatModel,
    Completion,
    Request,
    ScoringModel,
    VersionedModel,
    close_model,
)
from swarm_ui.nodes.models.acting.board import Board, FolderBoard, pull
from swarm_ui.nodes.models.acting.calls import ActorLost, answered
from swarm_ui.rollout.cluster import connected

T = TypeVar("T")

Factory = Callable[[], ChatModel | Awaitable[ChatModel]]
"""Makes the model in the process that holds it."""

_NEEDED_FOR = "a model held by an actor"
_CALLS = 10_000
"""Calls that an actor takes at the same time. They wait in the queue of the model."""
_PATIENCE = 300.0
"""Seconds to wait for room on a machine."""
_ATTEMPTS = 3
"""Maximum number of attempts of a call to a live actor, such as after a broken connection."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a held model for other processes."""

    name: str
    scores: bool
    """Whether it can compute the probability of a given reply."""
    adapters: dict[str, str] | None
    """The version of each adapter that the factory loaded. ``None``: the model has no versions, so
    requests name adapters without a version."""


class HeldModel:
    """Holds one model, in an actor. It is made at the first request, and again after a restart.

    The model has a thread with an event loop of its own, so that the actor accepts requests during
    a forward pass. These requests form the next batch.
    """

    def __init__(self, factory: Factory, *, kept: int = 2, linger: float = 0.0) -> None:
        """For the arguments see :func:`hold_model`."""
        self._factory, self._kept, self._linger = factory, kept, linger
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model", daemon=True)
        self._thread.start()
        self._making: asyncio.Task[Any] | None = None
        self._own: dict[str, str] | None = None
        """The version of each adapter that the factory loaded. They stay."""
        self._recent: dict[str, None] = {}
        """Versions from the board that stay in memory, in the order of their last use."""

    async def ready(self) -> int:
        """The process id of the actor, which shows that the actor was placed."""
        return os.getpid()

    async def about(self) -> About:
        """Describe the model, which is made now. Raises what the factory raises."""
        return await self._in_thread(self._about())

    async def generate(
        self, requests: Sequence[Request], board: Board | None = None
    ) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. A version that is not in memory is pulled from
        the board."""
        return await self._in_thread(self._answer("generate", board, requests))

    async def score(
        self, requests: Sequence[Request], replies: Sequence[str], board: Board | None = None
    ) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        return await self._in_thread(self._answer("score", board, requests, replies))

    async def versions(self) -> tuple[str, ...]:
        """The versions from the board that are in memory."""
        return tuple(self._recent)

    async def close(self) -> None:
        """Close the model, if it was made."""
        if self._making is not None:
            await self._in_thread(close_model(await self._in_thread(self._model())))

    async def _in_thread(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # -- in the model's thread ----------------------------------------------------------------

    async def _model(self) -> Any:
        failed = self._making is not None and self._making.done() and self._making.exception()
        if self._making is None or failed:
            self._making = asyncio.ensure_future(self._make())
        return await asyncio.shield(self._making)

    async def _make(self) -> Any:
        made = self._factory()
        model: Any = await made if inspect.isawaitable(made) else made
        if not isinstance(model, ChatModel):
            raise ConfigError(
                f"the factory of a held model returned a {type(model).__name__}; expected a model "
                "with a name and generate(requests)"
            )
        linger = getattr(model, "set_linger", None)
        if linger is not None and self._linger > 0:
            linger(self._linger)
        if isinstance(model, VersionedModel) and hasattr(model, "load_version"):
            self._own = {name: model.lease(name) for name in getattr(model, "adapters", ())}
        return model

    async def _about(self) -> About:
        model = await self._model()
        scores = isinstance(model, ScoringModel)
        return About(name=model.name, scores=scores, adapters=self._own)

    async def _answer(
        self, method: str, board: Board | None, requests: Sequence[Request], *others: object
    ) -> Any:
        model = await self._model()
        with ExitStack() as leases:
            for version in sorted({each.adapter for each in requests if each.adapter}):
                if (
                    board is not None
                    and self._own is not None
                    and version not in self._own.values()
                ):
                    await pull(model, version, board)
                    leases.callback(model.release, version)
                    await self._keep(model, version)
            return await getattr(model, method)(requests, *others)

    async def _keep(self, model: Any, version: str) -> None:
        """Keep the newest versions of each adapter in memory although no request uses them."""
        if version not in self._recent:
            model.lease(version)
        self._recent.pop(version, None)
        self._recent[version] = None
        name = version.rpartition("@")[0]
        for old in [each for each in self._recent if each.startswith(f"{name}@")][: -self._kept]:
            del self._recent[old]
            model.release(old)
            if hasattr(model, "unload_version"):  # it keeps what was loaded
                await model.unload_version(old)


class RayModel:
    """Asks the actors that hold a model; made by :func:`hold_model`.

    It is a :class:`~swarm_ui.model.ChatModel` and a :class:`~swarm_ui.model.VersionedModel`, and
    can be sent to other processes. It has no weights. A request names an adapter, or a version of
    one on the board.

    An actor that is lost is restarted by Ray, and its calls are repeated. If it was lost too often,
    the other replicas are asked; without any, calls raise ``ModelUnavailable``.
    """

    def __init__(
        self,
        actors: Sequence[Any],
        about: About,
        adapter_names: Mapping[str, str] | None = None,
        board: Board | None = None,
    ) -> None:
        """
        Args:
            actors: Ray's handles of the replicas.
            about: the model.
            adapter_names: version of each adapter; ``None``: those with which the model was loaded.
            board: where the actors find versions that they lack.
        """
        self.name = about.name
        self.adapter_names = about.adapters if adapter_names is None else adapter_names
        """The version of each adapter, or ``None`` if the model has no versions."""
        self._actors, self._about, self._board = tuple(actors), about, board
        self._where = f"the model '{about.name}' in {len(self._actors)} actors"
        self._open = [0] * len(self._actors)
        """Calls under way, of this process, by replica."""
        self._lost: set[int] = set()
        self._own = True

    def __repr__(self) -> str:
        return f"RayModel({self._where})"

    def __getstate__(self) -> tuple[Any, ...]:
        return self._actors, self._about, self.adapter_names, self._board

    def __setstate__(self, sent: tuple[Any, ...]) -> None:
        RayModel.__init__(self, *sent)
        self._own = False

    def with_versions(self, adapter_names: Mapping[str, str], board: Board | None = None) -> Self:
        """The same actors, asked for these versions of the adapters, such as
        ``{"agent_2": "agent_2@7"}``. Closing this model does not end them. ``board``: where these
        versions are; ``None``: in the folder of ``hold_model``."""
        other = type(self)(self._actors, self._about, dict(adapter_names), board or self._board)
        other._own = False
        return other

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`.

        Raises:
            ModelUnavailable: all replicas are lost, or a version is not on the board.
            ModelError: the model cannot answer.
        """
        completions: list[Completion] = await self._ask("generate", requests)
        return completions

    def lease(self, adapter: str) -> str:
        """The current version of an adapter; requests may name it until it is released. Raises
        ``ModelError`` if there is no such adapter."""
        names = self.adapter_names
        if names is None or adapter in names.values() or (self._board and "@" in adapter):
            return adapter
        if adapter not in names:
            known = ", ".join(names) or "none"
            raise ModelError(f"{self._where}: no adapter '{adapter}'; there are: {known}")
        return names[adapter]

    def release(self, version: str) -> None:
        """Does nothing: the actors keep the versions that were asked last."""

    async def versions(self) -> tuple[tuple[str, ...], ...]:
        """The versions from the board in the memory of each replica."""
        asked = [answered(actor.versions.remote(), self._where) for actor in self._actors]
        return tuple(await asyncio.gather(*asked))

    async def close(self) -> None:
        """End the actors. In a process that the model was sent to, nothing happens."""
        if self._own:
            ray = connected(_NEEDED_FOR)
            for actor in self._actors:
                ray.kill(actor)
            self._lost = set(range(len(self._actors)))

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        """Ask the replica with the fewest calls of this process, and another one if it is lost."""
        if not requests:
            return []
        exact = [
            each
            if each.adapter is None
            else msgspec.structs.replace(each, adapter=self.lease(each.adapter))
            for each in requests
        ]
        failed = 0
        while True:
            place = self._replica(requests[0].run)
            actor = self._actors[place]
            self._open[place] += 1
            try:
                ref = getattr(actor, method).remote(exact, *others, board=self._board)
                return await answered(ref, self._where)
            except ActorLost as error:
                failed += 1
                if await self._is_lost(place):
                    self._lost.add(place)
                elif failed > _ATTEMPTS:
                    raise
                if len(self._lost) == len(self._actors):
                    raise ModelUnavailable(
                        f"{self._where}: all of these actors are lost; the last error: {error}. "
                        "See Ray's log of the actors, and raise 'restarts' if machines are lost "
                        "often"
                    ) from error
            finally:
                self._open[place] -= 1

    async def _is_lost(self, place: int) -> bool:
        try:
            await answered(self._actors[place].ready.remote(), self._where)
        except ActorLost:
            return True
        return False

    def _replica(self, run: str) -> int:
        """The replica with the fewest calls. If several have equally few, a run keeps to the same
        replica, whose cache may hold its prompts."""
        places = [k for k in range(len(self._actors)) if k not in self._lost]
        if not places:
            raise ModelUnavailable(
                f"{self._where}: all of these actors are lost or closed; make the model again "
                "with hold_model"
            )
        first = zlib.crc32(run.encode()) % len(self._actors)
        return min(places, key=lambda k: (self._open[k], (k - first) % len(self._actors)))


class RayScoringModel(RayModel):
    """A held model that can also compute the probability of a given reply.

    It is a :class:`~swarm_ui.model.ScoringModel`.
    """

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        scores: list[float] = await self._ask("score", requests, list(replies))
        return scores


async def hold_model(
    factory: Factory,
    *,
    replicas: int = 1,
    gpus: float = 0.0,
    cpus: float = 1.0,
    resources: Mapping[str, float] | None = None,
    adapters: Path | None = None,
    kept: int = 2,
    restarts: int = 3,
    linger: float = 0.0,
) -> RayModel:
    """Start actors that hold a model, and return the model that asks them.

    Args:
        factory: makes the model in the actor; it is sent there. Files that it reads must be on
            the machine of the actor.
        replicas: number of actors, each with the whole model.
        gpus, cpus, resources: what Ray reserves for each; ``gpus`` may be a fraction.
        adapters: folder of published versions of adapters, which all machines can read: a request
            for ``agent_2@7`` loads ``adapters/agent_2@7``.
        kept: published versions of each adapter that stay in the memory of an actor although no
            request uses them.
        restarts: how often a lost actor is restarted.
        linger: seconds that a model waits for more requests before a forward.

    Returns:
        The model; a :class:`RayScoringModel` if it has ``score``. Close it in this process.

    Raises:
        ConfigError: this process is not connected to a cluster, the cluster has no room for the
            actors, or the model cannot be made.
        MissingExtra: Ray is not installed.
    """
    if replicas < 1 or kept < 1:
        raise ConfigError(f"hold_model: replicas and kept must be >= 1, got {replicas} and {kept}")
    ray = connected(_NEEDED_FOR)
    options: dict[str, Any] = {
        "num_gpus": gpus, "num_cpus": cpus, "resources": dict(resources or {}),
        "max_restarts": restarts, "max_task_retries": restarts, "max_concurrency": _CALLS,
    }  # fmt: skip
    kind = ray.remote(HeldModel).options(**options)
    actors = [kind.remote(factory, kept=kept, linger=linger) for _ in range(replicas)]
    try:
        await _placed(actors, f"{cpus:g} CPU, {gpus:g} GPU and {dict(resources or {})}")
        asked = [answered(actor.about.remote(), _NEEDED_FOR) for actor in actors]
        about: About = (await asyncio.gather(*asked))[0]
    except BaseException:  # raised again: nothing stays behind
        for actor in actors:
            ray.kill(actor)
        raise
    board = None if adapters is None else FolderBoard(adapters)
    return (RayScoringModel if about.scores else RayModel)(actors, about, board=board)


async def _placed(actors: Sequence[Any], needs: str) -> None:
    """Wait until all actors run. Raises ``ConfigError`` if they do not."""
    waiting = asyncio.gather(*(answered(actor.ready.remote(), _NEEDED_FOR) for actor in actors))
    try:
        await asyncio.wait_for(waiting, _PATIENCE)
    except ActorLost as error:
        raise ConfigError(
            f"{_NEEDED_FOR}: its process could not be made; is the same code installed on every "
            f"machine? {error}"
        ) from error
    except TimeoutError:
        raise ConfigError(
            f"{_NEEDED_FOR}: expected room for {len(actors)} actors of {needs} each within "
            f"{_PATIENCE:g} s, got no room in the Ray cluster. Ask for less, or add machines"
        ) from None
