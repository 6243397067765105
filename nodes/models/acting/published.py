"""A model whose adapters a learner publishes, for processes that hold the base model themselves.

    learner = LocalModel.load()                                   # trains
    model = PublishedModel(learner, LocalModel.load)
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)

In this process, the learner answers. A process that receives the team makes the model once, and
loads a version at the first request to it. Instead of the function that makes the model, you can
give a model that actors hold (``hold_model``): then the actors load the versions, and all processes
ask the actors.

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
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import msgspec

from swarm_ui.adapter_metadata import write_metadata
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import (
    ChatModel,
    Completion,
    Request,
    ScoringModel,
    VersionedModel,
    at_leased_versions,
    close_model,
)

Factory = Callable[[], ChatModel | Awaitable[ChatModel]]
"""Makes the model in the process that holds it."""
Files = Any
"""The files of a version by name, as bytes; or Ray's reference to them."""


def save_version(version: str, learner: Any, folder: Path) -> None:
    """Write one version of a learner's adapter, with its metadata. Raises ``OSError``."""
    learner.save_version(version, folder)
    metadata = learner.metadata(version).saved_with(learner.name, learner.base_fingerprint())
    write_metadata(folder, metadata)


def _files(version: str, learner: Any) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        save_version(version, learner, Path(folder))
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    ray = sys.modules.get("ray")
    return ray.put(files) if ray is not None and ray.is_initialized() else files


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a held model for other processes."""

    name: str
    scores: bool
    """Whether it can compute the probability of a given reply."""
    adapters: dict[str, str] | None
    """The version of each adapter that the factory loaded. ``None``: the model has no versions, so
    requests name adapters without a version."""


class HeldModel:
    """Holds one model in a process, which may be that of an actor. It is made at the first request,
    and again after a failure. It loads versions that it lacks, and keeps those that were used last.
    """

    def __init__(self, factory: Factory, kept: int = 2) -> None:
        """``kept``: versions of each published adapter that stay in memory without a request."""
        self._factory, self._kept = factory, kept
        self._making: asyncio.Task[Any] | None = None
        self._own: dict[str, str] | None = None
        """The version of each adapter that the model has from the beginning. They stay. ``None``:
        it has no versions."""
        self._recent: dict[str, None] = {}
        """Loaded versions, which are leased, in the order of their last use."""
        self._loading = asyncio.Lock()

    async def ready(self) -> int:
        """The id of the process, which shows that an actor was placed."""
        return os.getpid()

    async def about(self) -> About:
        """Describe the model, which is made now. Raises what the factory raises."""
        model = await self._model()
        return About(name=model.name, scores=isinstance(model, ScoringModel), adapters=self._own)

    async def used(self) -> tuple[int, int]:
        """Calls and tokens that the budget of the model counts."""
        budget = (await self._model()).budget
        return budget.calls, budget.tokens

    async def close(self) -> None:
        """Close the model, if it was made."""
        if self._making is not None:
            await close_model(await self._model())

    async def ask(
        self, method: str, files: Mapping[str, Files], requests: Sequence[Request], *others: object
    ) -> Any:
        """Call ``generate`` or ``score``, for exact versions of adapters, some of which have
        ``files``. Raises ``ModelError`` if a version cannot be read, or does not fit the model."""
        model = await self._model()
        wanted = {each.adapter for each in requests if each.adapter} & files.keys()
        wanted -= wanted if self._own is None else {*self._own.values()}
        with ExitStack() as leases:
            async with self._loading:
                for version in sorted(wanted):
                    if version not in self._recent:
                        await _load(model, version, files[version])
                        model.lease(version)
                    self._recent.pop(version, None)
                    self._recent[version] = None
                    leases.callback(model.release, model.lease(version))
                most = max(len(wanted), self._kept * len(files))
                for old in [*self._recent][:-most] if wanted else ():
                    del self._recent[old]
                    model.release(old)
                    if hasattr(model, "unload_version"):  # it keeps what was loaded
                        await model.unload_version(old)
            return await getattr(model, method)(requests, *others)

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
        if isinstance(model, VersionedModel) and hasattr(model, "load_version"):
            self._own = {name: model.lease(name) for name in getattr(model, "adapters", ())}
        return model


async def _load(model: Any, version: str, files: Files) -> None:
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


class PublishedCopy:
    """A model in another process than its learner's. It answers with the versions that were
    published there; an adapter's name without a version means the one that was current when this
    object was made. It is a :class:`~swarm_ui.model.VersionedModel`.
    """

    name: str

    def __init__(self, current: Mapping[str, str] | None) -> None:
        """``current``: the version of each adapter; ``None``: the model has no versions."""
        self.current = None if current is None else dict(current)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        with at_leased_versions(self, requests) as exact:
            done: list[Completion] = await self._ask("generate", exact) if exact else []
        return done

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

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        """Answer requests for exact versions."""
        raise NotImplementedError


class ScoringCopy(PublishedCopy):
    """One that can also compute the probability of a given reply. It is a
    :class:`~swarm_ui.model.ScoringModel`."""

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        with at_leased_versions(self, requests) as exact:
            found: list[float] = await self._ask("score", exact, list(replies)) if exact else []
        return found


class PublishedModel:
    """The adapters of a learner, also in processes that receive this object. It is a
    :class:`~swarm_ui.model.VersionedModel` and a :class:`~swarm_ui.model.ScoringModel`.

    Args:
        learner: a model of this process, which holds and trains the adapters.
        elsewhere: makes a model with the same base weights in another process, without adapters; it
            is sent there. Or a model that actors hold (``hold_model``), with the same base weights.
    """

    def __init__(self, learner: Any, elsewhere: Any) -> None:
        self.learner, self.name = learner, learner.name
        self.counters: Any = learner.counters
        self.adapters: tuple[str, ...] = learner.adapters
        self.generate, self.score = learner.generate, learner.score
        self.lease, self.release = learner.lease, learner.release
        self._elsewhere, self._key = elsewhere, uuid4().hex
        self._current: dict[str, str] = {}
        self._files: dict[str, Files] = {}

    def __repr__(self) -> str:
        return f"PublishedModel('{self.name}')"

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._elsewhere, PublishedCopy):
            held: Any = self._elsewhere
            return _same, (held.with_versions(self._current, self._files),)
        return LoadedCopy, (self._key, self.name, self._elsewhere, self._current, self._files)

    def publish(self) -> Mapping[str, str]:
        """Publish the current weights for the objects that are sent from now on, and give the
        version of each adapter."""
        files: dict[str, Files] = {}
        for name in self.learner.adapters:
            version = self._current[name] = self.learner.lease(name)
            try:
                files[version] = self._files.get(version) or _files(version, self.learner)
            finally:
                self.learner.release(version)
        self._files = files
        return dict(self._current)

    async def close(self) -> None:
        """Forget the published weights. A model that actors hold is not closed."""
        self._files = {}


def _same(model: PublishedCopy) -> PublishedCopy:
    """What a :class:`PublishedModel` is in another process if actors hold the model."""
    return model


_BASES: WeakValueDictionary[str, HeldModel] = WeakValueDictionary()
"""Base models of this process by the key of a published model. A team is sent again in every
iteration; a base model is freed with the last copy that uses it."""


class LoadedCopy(ScoringCopy):
    """A :class:`PublishedModel` in another process: the base model of that process, which loads the
    published versions."""

    def __init__(
        self,
        key: str,
        name: str,
        make: Callable[[], Any],
        current: Mapping[str, str],
        files: Mapping[str, Files],
    ) -> None:
        """``key``: identifies the published model, so that a process makes its base model once."""
        super().__init__(current)
        self.name = name
        self._key, self._make, self._files = key, make, files
        self._base = _BASES.get(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedCopy, (self._key, self.name, self._make, self.current, self._files)

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        if self._base is None:
            self._base = _BASES.setdefault(self._key, HeldModel(self._make))
        return await self._base.ask(method, self._files, requests, *others)
