"""A model that is held by Ray actors and asked from any process of the cluster.

model = await hold_model(partial(LocalModel.load, folder), gpus=0.5, replicas=2)
team = CollabGraph.collaborative(agents=4, rounds=2, model=model)
…                       # the team can be sent to workers; all of them ask the same actors
await model.close()     # ends the actors
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import Completion, Request, at_leased_versions
from swarm_ui.nodes.models.acting.calls import ActorLost, answered
from swarm_ui.nodes.models.acting.held_model import About, Factory, HeldModel
from swarm_ui.nodes.models.leases import give_up
from swarm_ui.nodes.models.published_adapters import VersionMissing
from swarm_ui.nodes.models.published_version import PublishedVersion
from swarm_ui.rollout.cluster import connected

_Sent = tuple[tuple[Any, ...], About, dict[str, str] | None, Any]
_NEEDED_FOR = "a model held by an actor"
_CALLS = 10_000
"""Calls that an actor takes at the same time. They wait in the queue of the model."""
_PATIENCE = 300.0
"""Seconds to wait for room on a machine."""
_ATTEMPTS = 3
"""Maximum number of attempts of a call to a live actor, such as after a broken connection."""


class RayModel:
    """Asks the actors that hold a model; made by :func:`hold_model`.

    It is a :class:`~swarm_ui.model.ChatModel` and a :class:`~swarm_ui.model.VersionedModel`, and
    can be sent to other processes. It has no weights. A request names an adapter, or a version of
    one that was published (:mod:`swarm_ui.nodes.models.published_version`).

    An actor that is lost is restarted by Ray, and its calls are repeated. If it was lost too often,
    the other replicas are asked; without any, calls raise ``ModelUnavailable``.
    """

    def __init__(
        self,
        actors: Sequence[Any],
        about: About,
        adapter_names: Mapping[str, str] | None = None,
        published: Any = None,
    ) -> None:
        """
        Args:
            actors: Ray's handles of the replicas.
            about: the model.
            adapter_names: version of each adapter, read at every lease. Other processes have the
                versions of the time when the model was sent. ``None``: the adapters with which the
                model was loaded.
            published: Ray's reference to the published versions by name. A replica that does not
                know a version receives it. ``None``: there are none, or they are in the folder of
                ``hold_model``.
        """
        self.name = about.name
        self.adapter_names = about.adapters if adapter_names is None else adapter_names
        """The version of each adapter, or ``None`` if the model has no versions."""
        self._actors, self._about = tuple(actors), about
        self._where = f"the model '{about.name}' in {len(self._actors)} actors"
        self._leases: Counter[str] = Counter()
        self._published = published
        self._open = [0] * len(self._actors)
        """Calls under way, of this process, by replica."""
        self._lost: set[int] = set()
        self._own = True

    def __repr__(self) -> str:
        return f"RayModel({self._where})"

    def __getstate__(self) -> _Sent:
        names = self.adapter_names
        return self._actors, self._about, None if names is None else dict(names), self._published

    def __setstate__(self, sent: _Sent) -> None:
        RayModel.__init__(self, *sent)
        self._own = False

    @property
    def leased(self) -> frozenset[str]:
        """Versions that runs of this process are using."""
        return frozenset(+self._leases)

    def with_versions(
        self,
        adapter_names: Mapping[str, str],
        published: Mapping[str, PublishedVersion] | None = None,
    ) -> Self:
        """The same actors, asked for these versions of the adapters, such as
        ``{"agent_2": "agent_2@7"}``. Closing this model does not end them.

        ``published``: the locations of versions, which are sent through Ray's object store.
        ``None``: versions are in the folder of ``hold_model``.
        """
        sent = None if published is None else connected(_NEEDED_FOR).put(dict(published))
        other = type(self)(self._actors, self._about, adapter_names, sent)
        other._own = False
        return other

    async def send_versions(self) -> None:
        """Send the locations of the published versions to all replicas. A lost replica gets them
        with its next request."""
        if self._published is not None:
            told = [self._tell(actor) for actor in self._actors]
            for error in await asyncio.gather(*told, return_exceptions=True):
                if isinstance(error, BaseException) and not isinstance(error, ActorLost):
                    raise error

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`.

        Raises:
            ModelUnavailable: all replicas are lost.
            ModelError: the model cannot answer.
        """
        if not requests:
            return []
        with at_leased_versions(self, requests) as exact:
            completions: list[Completion] = await self._ask("generate", requests[0].run, exact)
        return completions

    def lease(self, adapter: str) -> str:
        """The current version of an adapter; requests may name it until it is released. Raises
        ``ModelError`` if there is no such adapter."""
        names = self.adapter_names
        version = adapter if names is None else names.get(adapter, adapter)
        if names is not None and version not in names.values() and not self._leases[version]:
            known = ", ".join(names) or "none"
            raise ModelError(f"{self._where}: no adapter '{adapter}'; there are: {known}")
        self._leases[version] += 1
        return version

    def release(self, version: str) -> None:
        """Give back what :meth:`lease` returned. Raises ``ModelError`` if it is not leased."""
        give_up(self._leases, version)

    async def versions(self) -> tuple[tuple[str, ...], ...]:
        """The published versions in the memory of each replica."""
        asked = [answered(actor.versions.remote(), self._where) for actor in self._actors]
        return tuple(await asyncio.gather(*asked))

    async def close(self) -> None:
        """End the actors. In a process that the model was sent to, nothing happens."""
        if self._own:
            ray = connected(_NEEDED_FOR)
            for actor in self._actors:
                ray.kill(actor)
            self._lost = set(range(len(self._actors)))

    async def _ask(self, method: str, run: str, *arguments: object) -> Any:
        """Ask the replica with the fewest calls of this process, and another one if it is lost."""
        failed, untold = 0, False
        while True:
            place = self._replica(run)
            self._open[place] += 1
            try:
                if untold:
                    await self._tell(self._actors[place])
                ref = getattr(self._actors[place], method).remote(*arguments)
                return await answered(ref, self._where)
            except VersionMissing:  # the replica was restarted
                failed, untold = failed + 1, True
                if self._published is None or failed > _ATTEMPTS:
                    raise
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

    async def _tell(self, actor: Any) -> None:
        await answered(actor.receive.remote(self._published), self._where)

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
        if not requests:
            return []
        with at_leased_versions(self, requests) as exact:
            scores: list[float] = await self._ask("score", requests[0].run, exact, list(replies))
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
    linger: float = 0.002,
) -> RayModel:
    """Hold a model in actors of the Ray cluster that this process is connected to.

    Args:
        factory: makes the model, in the actor; it is sent there. Files that it reads must be on
            the machine of the actor.
        replicas: number of actors, each with the whole model.
        gpus, cpus, resources: what Ray reserves for each; ``gpus`` may be a fraction.
        adapters: folder of published versions of adapters, which all machines can read.
        kept: published versions of each adapter that stay in the memory of an actor although no
            request uses them. Requests for other versions are answered too, after the version is
            read from the folder again.
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
    folder = None if adapters is None else adapters.resolve()
    kind = ray.remote(HeldModel).options(**options)
    actors = [kind.remote(factory, folder, kept=kept, linger=linger) for _ in range(replicas)]
    try:
        await _placed(actors, f"{cpus:g} CPU, {gpus:g} GPU and {dict(resources or {})}")
        asked = [answered(actor.about.remote(), _NEEDED_FOR) for actor in actors]
        about: About = (await asyncio.gather(*asked))[0]
    except BaseException:  # raised again: nothing stays behind
        for actor in actors:
            ray.kill(actor)
        raise
    return (RayScoringModel if about.scores else RayModel)(actors, about)


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
