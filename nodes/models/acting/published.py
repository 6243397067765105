"""A model whose adapters a learner publishes, for processes that hold the base model themselves.

    learner = LocalModel.load()                                   # trains
    model = PublishedModel(learner, LocalModel.load)
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)

In this process, the learner answers. A process that receives the team makes the model once, and
loads a version at the first request to it. Instead of the function that makes the model, you can
give a model that actors hold (``hold_model``): then the actors load the versions, and all processes
ask the actors:

    model = await hold_model(partial(LocalModel.load, folder), gpus=0.5)
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model)
    …                       # the team can be sent to workers; all of them ask the same actor
    await model.close()     # ends the actor

A version such as ``"agent_2@7"`` is sent as the files that peft writes; in a Ray cluster as a
reference to them, so that a process fetches only those that it lacks.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import (
    ChatModel,
    Completion,
    Request,
    ScoringModel,
    VersionedModel,
    at_leased_versions,
    close_model,
)
from swarm_ui.rollout.ray import connected, imported, reason

Factory = Callable[[], ChatModel | Awaitable[ChatModel]]
"""Makes the model in the process that holds it."""
T = TypeVar("T")
_NEEDED_FOR = "a model held by an actor"
_CALLS = 10_000
"""Calls that an actor takes at the same time. They wait in the queue of the model."""
_PATIENCE = 300.0
"""Seconds to wait for room on a machine."""
_HERE: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Models and clients of this process, by the key of what was sent. A team is sent again in every
iteration; what it shares is freed with the last copy that uses it."""


def shared(key: str, made: T) -> T:
    """What this process has under a key: ``made``, if there was nothing yet."""
    found: T = _HERE.setdefault(key, made)
    return found


class ModelCopy:
    """A model in another process than its learner's. It answers with the versions that were
    published there; an adapter's name without a version means the one that was current when this
    object was made. It is a :class:`~swarm_ui.model.VersionedModel`, and a
    :class:`~swarm_ui.model.ScoringModel` if it ``scores``.

    Args:
        place: where the model answers, for all processes that this object is sent to: a
            :class:`HeldModel`, or what asks one in an actor, or a server.
        name: the model's name.
        scores: whether the model at this place can score.
        current: the version of each adapter; ``None``: the model has no versions.
        files: what the place needs of each version, if it lacks it.
    """

    def __init__(
        self,
        place: Any,
        name: str,
        scores: bool,
        current: Mapping[str, str] | None,
        files: Mapping[Any, Any],
    ) -> None:
        self.place, self.name, self.scores = place, name, scores
        self.current = None if current is None else dict(current)
        self._files = files
        if scores:
            self.score = self._score

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelCopy, (self.place, self.name, self.scores, self.current, self._files)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        done: list[Completion] = await self._ask("generate", requests)
        return done

    async def _score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply; see :class:`swarm_ui.model.ScoringModel`."""
        found: list[float] = await self._ask("score", requests, list(replies))
        return found

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        with at_leased_versions(self, requests) as exact:
            return await self.place.ask(method, self._files, exact, *others) if exact else []

    def lease(self, adapter: str) -> str:
        """The published version of an adapter; a version stands for itself. Raises ``ModelError``
        if there is no such adapter."""
        if self.current is None or "@" in adapter:
            return adapter
        if adapter not in self.current:
            known = ", ".join(self.current.values()) or "none"
            raise ModelError(f"no adapter '{adapter}'; there are: {known}")
        return self.current[adapter]

    def release(self, version: str) -> None:
        """Does nothing: a version stays while an object that was sent refers to it."""

    async def close(self) -> None:
        """Close what this process holds of the place."""
        await close_model(self.place)


class HeldModel:
    """Holds one model in a process, which may be that of an actor. It is made at the first request,
    and again after a failure. It loads versions that it lacks."""

    def __init__(self, factory: Factory, key: str = "") -> None:
        """``key``: identifies it in other processes, each of which makes the model once."""
        self._factory, self._key = factory, key or uuid4().hex
        self._made: Any = None
        self._own: dict[str, str] | None = None
        """The version of each adapter that the model has from the beginning. They stay. ``None``:
        it has no versions."""
        self._making, self._loading = asyncio.Lock(), asyncio.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _held, (self._key, self._factory)

    async def ready(self) -> int:
        """The id of the process, which shows that an actor was placed."""
        return os.getpid()

    async def about(self) -> tuple[str, bool, dict[str, str] | None]:
        """Name, whether it can score, and the version of each adapter (``None``: it has no
        versions) of the model, which is made now. Raises what the factory raises."""
        model = await self._model()
        return model.name, isinstance(model, ScoringModel), self._own

    async def used(self) -> tuple[int, int]:
        """Calls and tokens that the budget of the model counts."""
        budget = (await self._model()).budget
        return budget.calls, budget.tokens

    async def ask(
        self, method: str, files: Mapping[Any, Any], requests: Sequence[Request], *others: object
    ) -> Any:
        """Call ``generate`` or ``score``, for exact versions of adapters. The files of a version
        are those of peft, as bytes by their name, or Ray's reference to them. Raises ``ModelError``
        if a version cannot be read, or does not fit the model."""
        model = await self._model()
        wanted = {each.adapter for each in requests if each.adapter} & files.keys()
        with ExitStack() as leases:
            async with self._loading:
                for version in sorted(wanted) if self._own is not None else ():
                    try:
                        held = model.lease(version)
                    except ModelError:  # it lacks this one
                        await _load(model, version, files[version])
                        held = model.lease(version)
                    leases.callback(model.release, held)
            return await getattr(model, method)(requests, *others)

    async def _model(self) -> Any:
        async with self._making:
            if self._made is None:
                made = self._factory()
                model: Any = await made if inspect.isawaitable(made) else made
                if not isinstance(model, ChatModel):
                    raise ConfigError(
                        f"the factory of a held model returned a {type(model).__name__}; expected "
                        "a model with a name and generate(requests)"
                    )
                if isinstance(model, VersionedModel) and hasattr(model, "load_version"):
                    self._own = {name: model.lease(name) for name in getattr(model, "adapters", ())}
                self._made = model
        return self._made


def _held(key: str, factory: Factory) -> HeldModel:
    return shared(key, HeldModel(factory, key))


async def _load(model: Any, version: str, files: Any) -> None:
    found = files if isinstance(files, Mapping) else await files
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in found.items():
                (Path(folder) / name).write_bytes(data)
            made = model.load_version(version, Path(folder))
            if inspect.isawaitable(made):
                await made
    except (OSError, ConfigError) as error:
        raise ModelError(
            f"cannot load the published {version} of '{model.name}' in this process: {error}"
        ) from error


class PublishedModel:
    """The adapters of a learner, also in processes that receive this object. It is a
    :class:`~swarm_ui.model.VersionedModel` and a :class:`~swarm_ui.model.ScoringModel`.

    Args:
        learner: a model of this process, which holds and trains the adapters.
        elsewhere: makes a model with the same base weights in another process, without adapters; it
            is sent there. Or a model that actors hold (``hold_model``), with the same base weights.
    """

    def __init__(self, learner: Any, elsewhere: Factory | ModelCopy) -> None:
        self.learner, self.name = learner, learner.name
        self.score, self.lease, self.release = learner.score, learner.lease, learner.release
        self._scores = not isinstance(elsewhere, ModelCopy) or elsewhere.scores
        self._place: Any = (
            elsewhere.place if isinstance(elsewhere, ModelCopy) else HeldModel(elsewhere)
        )
        self._current: dict[str, str] = {}
        """The published version of each adapter."""
        self._files: dict[Any, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.name}')"

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelCopy, (self._place, self.name, self._scores, self._current, self._files)

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the learner's adapters."""
        return tuple(self.learner.adapters)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`."""
        done: list[Completion] = await self.learner.generate(requests)
        return done

    def publish(self) -> Mapping[str, str]:
        """Publish the current weights for the objects that are sent from now on, and give the
        version of each adapter. Raises ``ConfigError`` if one cannot be written."""
        files: dict[Any, Any] = {}
        for name in self.learner.adapters:
            version = self._current[name] = self.learner.lease(name)
            try:
                files[version] = self._files.get(version) or self._file(version)
            finally:
                self.learner.release(version)
        self._files = files
        return dict(self._current)

    async def close(self) -> None:
        """Forget the published weights. A model that actors hold is not closed."""
        self._files = {}

    def _file(self, version: str) -> Any:
        """What another process needs of a version."""
        with tempfile.TemporaryDirectory() as folder:
            self.learner.save_version(version, Path(folder))
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        ray = sys.modules.get("ray")
        return ray.put(files) if ray is not None and ray.is_initialized() else files


# -- models that Ray actors hold ------------------------------------------------------------------


class Actor:
    """A Ray actor that holds a model. Limits and the budget of the model hold for all processes
    together. Ray restarts a lost actor, and repeats its calls; if it was lost too often, calls
    raise ``ModelUnavailable``."""

    def __init__(self, actor: Any, where: str, own: bool = True) -> None:
        """``own``: whether closing this object ends the actor."""
        self.actor, self._where, self._own = actor, where, own

    def __reduce__(self) -> tuple[Any, ...]:
        return Actor, (self.actor, self._where, False)

    async def ask(
        self, method: str, files: Mapping[Any, Any], requests: Sequence[Request], *others: object
    ) -> Any:
        """See :meth:`HeldModel.ask`."""
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
    factory: Factory, *, gpus: float = 0.0, cpus: float = 1.0, restarts: int = 3
) -> ModelCopy:
    """Start an actor that holds a model, and return the model that asks it. It has no weights and
    can be sent to other processes. Close it in this one.

    Args:
        factory: makes the model in the actor; it is sent there. Files that it reads must be on
            the machine of the actor.
        gpus, cpus: what Ray reserves; ``gpus`` may be a fraction.
        restarts: how often a lost actor is restarted.

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
        if isinstance(failure, TimeoutError):
            raise ConfigError(
                f"{_NEEDED_FOR}: expected room for {needs} within {_PATIENCE:g} s, got no room in "
                "the Ray cluster. Ask for less, or add machines"
            ) from None
        if isinstance(failure, ModelUnavailable):
            raise ConfigError(
                f"{_NEEDED_FOR}: its process could not be made; is the same code installed on "
                f"every machine? {failure}"
            ) from failure
        raise
    where = f"the model '{name}', which an actor holds"
    return ModelCopy(Actor(actor, where), name, scores, adapters, {})


async def answered(ref: Any, who: str) -> Any:
    """The result of a call of an actor (``who``, for errors). Cancelling this coroutine cancels the
    call. Raises ``ModelUnavailable`` if the actor or its node was lost or cannot be reached, or
    what the call itself raised in the actor."""
    ray = imported()
    try:
        return await ref
    except asyncio.CancelledError:
        ray.cancel(ref)
        raise
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, Exception):
            raise error.cause from None
        raise ModelError(f"{who} failed: {reason(error)}") from error
    except ray.exceptions.RayError as error:
        raise ModelUnavailable(
            f"{who}, does not answer: {reason(error)}. See Ray's log of the actor, and raise "
            "'restarts' if machines are lost often"
        ) from error
