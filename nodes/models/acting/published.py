"""Models for other processes: of adapters that a learner publishes, or held by a Ray actor.

    model = PublishedModel(learner, LocalModel.load)  # each process loads the base model once
    held = await hold_model(partial(LocalModel.load, folder), gpus=0.5)
    model = PublishedModel(learner, held)             # all processes ask the actor

A graph with such a model can be sent to workers. In this process, the learner answers. Elsewhere, a
version such as ``"agent_2@7"`` is loaded at the first request to it, from the files that peft
writes; in a Ray cluster, a reference to them is sent.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
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
    check_model,
    close_model,
)
from swarm_ui.nodes.models.versions import not_sent, parsed_version
from swarm_ui.rollout.ray import connected, imported, reason

Factory = Callable[[], ChatModel | Awaitable[ChatModel]]
"""Makes the model in the process that holds it."""
Versions = Mapping[str, Any]
"""What a place needs of each published version: the prompt format, for a server; else the files of
peft, as bytes by their name, or Ray's reference to them."""
T = TypeVar("T")
_NEEDED_FOR = "a model held by an actor"
_CALLS = 10_000
"""Calls that an actor takes at the same time. They wait in the queue of the model."""
_PATIENCE = 300.0
"""Seconds to wait for room on a machine."""
_HERE: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Models and clients of this process, by the key of what was sent. A team is sent again in every
iteration; what it shares is freed with the last copy that uses it."""


def shared(key: str, make: Callable[..., T], *arguments: Any) -> T:
    """What this process has under a key; it is made if there is nothing yet."""
    found: T = _HERE.get(key) or _HERE.setdefault(key, make(*arguments))
    return found


class ModelCopy:
    """A model in another process than its learner's. An adapter's name without a version means the
    one that was published when this object was made. It is a
    :class:`~swarm_ui.model.VersionedModel`, and a :class:`~swarm_ui.model.ScoringModel` if it
    ``scores``.

    Args:
        place: where the model answers, for all processes that this object is sent to: a
            :class:`HeldModel`, an :class:`Actor`, or a server.
        name: the model's name.
        scores: whether the model at this place can score.
        versions: the published versions; ``None``: the model has no versions.
    """

    def __init__(self, place: Any, name: str, scores: bool, versions: Versions | None) -> None:
        self.place, self.name, self.scores, self.versions = place, name, scores, versions
        self._current = {parsed_version(version)[0]: version for version in versions or ()}
        if scores:
            self.score = partial(self._ask, "score")

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelCopy, (self.place, self.name, self.scores, self.versions)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        done: list[Completion] = await self._ask("generate", requests)
        return done

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        with at_leased_versions(self, requests) as exact:
            return await self.place.ask(method, self.versions or {}, exact, *others)

    def lease(self, adapter: str) -> str:
        """The published version of an adapter; a version stands for itself. Raises ``ModelError``
        if there is no such adapter."""
        if self.versions is None or "@" in adapter:
            return adapter
        if adapter not in self._current:
            known = ", ".join(self.versions) or "none"
            raise ModelError(f"no adapter '{adapter}'; there are: {known}")
        return self._current[adapter]

    def release(self, version: str) -> None:
        """Does nothing: a version stays while an object that was sent refers to it."""

    async def close(self) -> None:
        """Close what this process holds of the place."""
        await close_model(self.place)


class PublishedModel:
    """The adapters of a learner, also in processes that receive this object. It is a
    :class:`~swarm_ui.model.VersionedModel` and a :class:`~swarm_ui.model.ScoringModel`.

    Args:
        learner: a model of this process, which holds and trains the adapters.
        elsewhere: makes a model with the same base weights in another process, without adapters; it
            is sent there. Or a model that an actor holds (``hold_model``), with the same weights.
    """

    def __init__(self, learner: Any, elsewhere: Factory | ModelCopy) -> None:
        self.learner, self.name = learner, learner.name
        self.score, self.lease, self.release = learner.score, learner.lease, learner.release
        if not isinstance(elsewhere, ModelCopy):
            elsewhere = ModelCopy(HeldModel(elsewhere), learner.name, True, {})
        self._place, self._scores = elsewhere.place, elsewhere.scores
        self._versions: Versions | None = None
        """What was published; ``None``: nothing yet."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.name}')"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._versions is None:
            raise not_sent(f"the learner of '{self.name}', which has published nothing,")
        return ModelCopy, (self._place, self.name, self._scores, self._versions)

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
        current = {name: self.learner.lease(name) for name in self.learner.adapters}
        for version in current.values():  # until its next training step, the learner has it
            self.release(version)
        old = self._versions or {}
        self._versions = {v: old.get(v) or self._file(v) for v in current.values()}
        return current

    async def close(self) -> None:
        """Forget the published weights. A model that an actor holds is not closed."""
        self._versions = None

    def _file(self, version: str) -> Any:
        """What another process needs of a version."""
        with tempfile.TemporaryDirectory() as folder:
            self.learner.save_version(version, Path(folder))
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        ray = sys.modules.get("ray")
        return ray.put(files) if ray is not None and ray.is_initialized() else files


class HeldModel:
    """Holds one model in a process, which may be that of an actor. It is made at the first request,
    and again after a failure. It loads versions that it lacks."""

    def __init__(self, factory: Factory, key: str = "") -> None:
        """``key``: identifies it in other processes, each of which makes the model once."""
        self._factory, self._key = factory, key or uuid4().hex
        self._made: Any = None
        self._own: Versions | None = None
        """The versions that the model has from the beginning; they stay."""
        self._changing = asyncio.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return shared, (self._key, HeldModel, self._factory, self._key)

    async def ready(self) -> int:
        """The id of the process, which shows that an actor was placed."""
        return os.getpid()

    async def about(self) -> tuple[str, bool, Versions | None]:
        """The model's name, whether it can score, and its own versions. It is made now; what the
        factory raises is raised."""
        model = await self._model()
        return model.name, isinstance(model, ScoringModel), self._own

    async def used(self) -> tuple[int, int]:
        """Calls and tokens that the budget of the model counts."""
        budget = (await self._model()).budget
        return budget.calls, budget.tokens

    async def ask(
        self, method: str, versions: Versions, requests: Sequence[Request], *others: object
    ) -> Any:
        """What ``generate`` or ``score`` gives for exact versions of adapters. Raises
        ``ModelError`` if a version cannot be read, or does not fit the model."""
        model = await self._model()
        wanted = {each.adapter for each in requests if each.adapter} & versions.keys()
        with ExitStack() as leases:
            async with self._changing:
                for version in sorted(wanted) if self._own is not None else ():
                    try:
                        held = model.lease(version)
                    except ModelError:  # it lacks this one
                        await _load(model, version, versions[version])
                        held = model.lease(version)
                    leases.callback(model.release, held)
            return await getattr(model, method)(requests, *others)

    async def _model(self) -> Any:
        async with self._changing:
            if self._made is None:
                made = self._factory()
                model: Any = await made if inspect.isawaitable(made) else made
                check_model("the factory of a held model", model)
                if isinstance(model, VersionedModel) and hasattr(model, "load_version"):
                    self._own = {model.lease(name): None for name in getattr(model, "adapters", ())}
                self._made = model
        return self._made


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


# -- models that Ray actors hold ------------------------------------------------------------------


class Actor:
    """A Ray actor that holds a model, also its limits, for all processes together. Ray restarts a
    lost actor, and repeats its calls; if it was lost too often, they raise ``ModelUnavailable``."""

    def __init__(self, actor: Any, where: str, own: bool = True) -> None:
        """``own``: whether closing this object ends the actor."""
        self.actor, self._where, self._own = actor, where, own

    def __reduce__(self) -> tuple[Any, ...]:
        return Actor, (self.actor, self._where, False)

    async def ask(self, *asked: object) -> Any:
        """See :meth:`HeldModel.ask`."""
        return await answered(self.actor.ask.remote(*asked), self._where)

    async def used(self) -> tuple[int, int]:
        """See :meth:`HeldModel.used`."""
        found: tuple[int, int] = await answered(self.actor.used.remote(), self._where)
        return found

    async def close(self) -> None:
        """End the actor. In a process that this object was sent to, nothing happens."""
        if self._own:
            connected(_NEEDED_FOR).kill(self.actor)


async def hold_model(
    factory: Factory, *, gpus: float = 0.0, cpus: float = 1.0, restarts: int = 3
) -> ModelCopy:
    """Start an actor that holds a model; return a model that asks it, which can be sent to other
    processes. Closing it in this one ends the actor.

    Args:
        factory: makes the model in the actor; it is sent there. Files that it reads must be on
            the machine of the actor.
        gpus, cpus: what Ray reserves; ``gpus`` may be a fraction.
        restarts: how often a lost actor is restarted.

    Raises:
        ConfigError: this process is not connected to a cluster, the cluster has no room for the
            actor, or the model cannot be made.
        ModelUnavailable: the process of the actor cannot be made.
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
        about = await answered(actor.about.remote(), _NEEDED_FOR)
    except BaseException as failure:  # nothing stays behind
        ray.kill(actor)
        if isinstance(failure, TimeoutError):
            raise ConfigError(
                f"{_NEEDED_FOR}: expected room for {needs} within {_PATIENCE:g} s, got no room in "
                "the Ray cluster. Ask for less, or add machines"
            ) from None
        raise
    return ModelCopy(Actor(actor, f"the model '{about[0]}', which an actor holds"), *about)


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
            f"{who}, does not answer: {reason(error)}. Install the same code on every machine; see "
            "Ray's log of the actor, and raise 'restarts' if machines are lost often"
        ) from error
