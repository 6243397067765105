"""A model whose adapters a learner publishes by versioned name, for other processes.

    learner = LocalModel.load()                                   # trains
    model = PublishedModel(learner, LocalModel.load, folder=run / "published")
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)

In this process, the learner answers. A process that receives the team makes the model once, and
loads a version at the first request to it. Instead of the function that makes the model, you can
give a model that actors hold (``hold_model``): the actors load the versions, and all processes ask
the actors. The weights are read from the folder, which all processes must see; without a folder
they are sent.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable
from uuid import uuid4

from swarm_ui.errors import ModelError
from swarm_ui.model import Completion, Request, at_leased_versions
from swarm_ui.nodes.models.published_adapters import PublishedAdapters
from swarm_ui.nodes.models.published_version import PublishedVersion, write_version
from swarm_ui.nodes.models.transformers.in_process_model import Counters, InProcessModel


@runtime_checkable
class HeldElsewhere(Protocol):
    """A model that other processes hold; :class:`~swarm_ui.nodes.models.acting.RayModel`."""

    def with_versions(
        self,
        adapter_names: Mapping[str, str],
        published: Mapping[str, PublishedVersion] | None = None,
    ) -> Self:
        """The same model, which answers requests to these adapters with the given versions."""
        ...

    async def send_versions(self) -> None:
        """Tell the processes that hold the model where the versions are."""
        ...


class PublishedModel:
    """The adapters of a learner, also in processes that receive this object. It is a
    :class:`~swarm_ui.model.VersionedModel`, a :class:`~swarm_ui.model.ScoringModel` and a
    :class:`~swarm_ui.optim.rollout_actors.Publisher`.

    Traces name versions as the learner does (``agent_2@7``).

    Args:
        learner: holds and trains the adapters.
        elsewhere: makes a model with the same base weights in another process, without adapters; it
            is sent there. Or a model that actors hold, with the same base weights.
        folder: where versions are saved. Each training run needs a separate folder, which all
            processes see under the same path. ``None``: the weights are sent through Ray's object
            store.
    """

    def __init__(
        self,
        learner: InProcessModel[Any],
        elsewhere: Callable[[], Any] | HeldElsewhere,
        folder: Path | None = None,
    ) -> None:
        self.learner = learner
        self.name = learner.name
        self._elsewhere, self._folder = elsewhere, folder
        self._key = uuid4().hex
        self._base = learner.base_fingerprint()
        self._current: dict[str, str] = {}
        """The published version of each adapter."""
        self._versions: dict[str, PublishedVersion] = {}
        self._held: HeldElsewhere | None = None
        """The held model, asked for the published versions."""
        self._told = False
        """Whether the actors that hold it know these versions."""

    def __repr__(self) -> str:
        where = "sent with it" if self._folder is None else f"in '{self._folder}'"
        return f"PublishedModel('{self.name}', weights {where})"

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._elsewhere, HeldElsewhere):
            return _as_sent, (self._held or self._elsewhere,)
        sent = self._key, self.name, self._elsewhere, dict(self._current), dict(self._versions)
        return PublishedCopy, sent

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return self.learner.adapters

    @property
    def counters(self) -> Counters:
        """Counts of the learner."""
        return self.learner.counters

    # -- answers ------------------------------------------------------------------------------

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        with at_leased_versions(self, requests) as exact:
            return await self.learner.generate(exact)

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        with at_leased_versions(self, requests) as exact:
            return await self.learner.score(exact, replies)

    def lease(self, adapter: str) -> str:
        """Keep the current version of an adapter available until :meth:`release`, and return it;
        see :class:`swarm_ui.model.VersionedModel`."""
        return self.learner.lease(adapter)

    def release(self, version: str) -> None:
        """End the lease of a version; see :class:`swarm_ui.model.VersionedModel`."""
        self.learner.release(version)

    async def close(self) -> None:
        """Remove the published weights. A model that actors hold is not closed."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # -- versions -----------------------------------------------------------------------------

    def publish(self) -> Mapping[str, str]:
        """See :class:`swarm_ui.optim.rollout_actors.Publisher`.

        Raises:
            ConfigError: a version cannot be written.
        """
        learner = self.learner
        current: dict[str, str] = {}
        published: dict[str, PublishedVersion] = {}
        for name in learner.adapters:
            version = learner.lease(name)
            try:
                published[version] = write_version(learner, version, self._folder, base=self._base)
            finally:
                learner.release(version)
            current[name] = version
        kept = {v: self._versions[v] for v in self._current.values()} | published
        folders = {each.folder for each in kept.values()}
        for old in self._versions.values():
            if old.folder and old.folder not in folders:
                shutil.rmtree(old.folder, ignore_errors=True)
        self._current, self._versions = current, kept
        if isinstance(self._elsewhere, HeldElsewhere):
            self._held, self._told = self._elsewhere.with_versions(self._current, kept), False
        return dict(self._current)

    async def prepare(self) -> None:
        """Send the locations of the published versions to the actors that hold the model; see
        :class:`swarm_ui.optim.rollout_actors.Publisher`."""
        if self._held is not None and not self._told:
            await self._held.send_versions()
            self._told = True


def _as_sent(model: HeldElsewhere) -> HeldElsewhere:
    """Return what a :class:`PublishedModel` is in another process: the model that the actors
    hold."""
    return model


class PublishedCopy:
    """A :class:`PublishedModel` in another process: the base model of that process, which loads the
    published versions. An adapter's name without a version means the version that was current when
    this object was pickled.
    """

    def __init__(
        self,
        key: str,
        name: str,
        make: Callable[[], Any],
        current: Mapping[str, str],
        versions: Mapping[str, PublishedVersion],
    ) -> None:
        """
        Args:
            key: identifies the published model, so that a process makes its base model once.
            name: the name of the model.
            make: makes the base model.
            current: the version of each adapter.
            versions: where the versions are.
        """
        self.name = name
        self._key, self._make = key, make
        self._current, self._versions = current, versions
        self._held: PublishedAdapters | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return PublishedCopy, (self._key, self.name, self._make, self._current, self._versions)

    def __repr__(self) -> str:
        return f"PublishedCopy('{self.name}')"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        async with self._available(requests) as asked:
            done: list[Completion] = await self._adapters().model.generate(asked)
        return done

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        async with self._available(requests) as asked:
            scores: list[float] = await self._adapters().model.score(asked, replies)
        return scores

    def lease(self, adapter: str) -> str:
        """Keep the current version of an adapter available until :meth:`release`, and return it;
        see :class:`swarm_ui.model.VersionedModel`."""
        version = self._current.get(adapter, adapter)
        adapters = self._adapters()
        if version not in self._versions and version not in adapters.loaded:
            known = ", ".join(self._versions) or "none"
            raise ModelError(f"no adapter '{version}' is published; there are: {known}")
        adapters.lease(version)
        return version

    def release(self, version: str) -> None:
        """End the lease of a version; see :class:`swarm_ui.model.VersionedModel`."""
        self._adapters().release(version)

    @asynccontextmanager
    async def _available(self, requests: Sequence[Request]) -> AsyncIterator[list[Request]]:
        """The requests, each for an exact version that is in memory inside the block."""
        with at_leased_versions(self, requests) as exact:
            adapters = self._adapters()
            adapters.receive(self._versions)
            async with adapters.available(exact) as asked:
                yield asked

    def _adapters(self) -> PublishedAdapters:
        """The base model of this process, with its adapters."""
        if self._held is None:
            self._held = _COPIES.pop(self._key, None) or PublishedAdapters(self._make(), kept=1)
            _COPIES[self._key] = self._held
            if len(_COPIES) > _KEPT_COPIES:
                del _COPIES[next(iter(_COPIES))]
        return self._held


_KEPT_COPIES = 2
_COPIES: dict[str, PublishedAdapters] = {}
"""Base models by the key of a published model, in the order of last use. They belong to the
process, because a team is sent again in every iteration and its base model must be loaded only
once. Older ones are freed with the last copy that uses them."""
