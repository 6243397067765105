"""A model whose adapters a learner publishes, for processes that hold the base model themselves.

    learner = LocalModel.load()                                   # trains
    model = PublishedModel(learner, LocalModel.load, folder=run / "published")
    team = CollabGraph.collaborative(agents=4, rounds=2, model=model, adapters=names)

In this process, the learner answers. A process that receives the team makes the model once, and
pulls a version at the first request to it. Instead of the function that makes the model, you can
give a model that actors hold (``hold_model``): then the actors pull the versions, and all processes
ask the actors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from swarm_ui.model import Completion, Request, at_leased_versions
from swarm_ui.nodes.models.acting.board import Board, FolderBoard, RayBoard, pull
from swarm_ui.nodes.models.acting.ray_model import RayModel
from swarm_ui.nodes.models.versions import book_of


class PublishedModel:
    """The adapters of a learner, also in processes that receive this object. It is a
    :class:`~swarm_ui.model.VersionedModel` and a :class:`~swarm_ui.model.ScoringModel`.

    Args:
        learner: a model of this process, which holds and trains the adapters.
        elsewhere: makes a model with the same base weights in another process, without adapters; it
            is sent there. Or a model that actors hold, with the same base weights.
        folder: where versions are saved, which all processes see under the same path. Each training
            run needs a separate one. ``None``: a Ray actor holds them.
        kept: the versions of this many calls of :meth:`publish` stay available.
    """

    def __init__(
        self,
        learner: Any,
        elsewhere: Callable[[], Any] | RayModel,
        folder: Path | None = None,
        *,
        kept: int = 2,
    ) -> None:
        self.learner, self.name = learner, learner.name
        self._elsewhere = elsewhere
        self.board: Board = RayBoard() if folder is None else FolderBoard(folder)
        self._published: deque[dict[str, str]] = deque([{}], maxlen=kept + 1)
        """The version of each adapter, at the last calls of :meth:`publish`."""
        self._key = uuid4().hex

    def __repr__(self) -> str:
        return f"PublishedModel('{self.name}', {self.board!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        current = self._published[-1]
        if isinstance(self._elsewhere, RayModel):
            return _same, (self._elsewhere.with_versions(current, self.board),)
        return PublishedCopy, (self._key, self.name, self._elsewhere, self.board, current)

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        adapters: tuple[str, ...] = self.learner.adapters
        return adapters

    @property
    def counters(self) -> Any:
        """Counts of the learner."""
        return self.learner.counters

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        done: list[Completion] = await self.learner.generate(requests)
        return done

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        scores: list[float] = await self.learner.score(requests, replies)
        return scores

    def lease(self, adapter: str) -> str:
        """Keep the current version of an adapter available until :meth:`release`, and return it;
        see :class:`swarm_ui.model.VersionedModel`."""
        version: str = self.learner.lease(adapter)
        return version

    def release(self, version: str) -> None:
        """End the lease of a version; see :class:`swarm_ui.model.VersionedModel`."""
        self.learner.release(version)

    def publish(self) -> Mapping[str, str]:
        """Put the current versions on the board, and give that of each adapter. Raises
        ``ConfigError`` if one cannot be written."""
        before = {version for current in self._published for version in current.values()}
        current = published(self.learner, self.board, before)
        self._published.append(current)
        gone, *stay = self._published
        stays = {version for each in stay for version in each.values()}
        for version in {*gone.values()} - stays:
            self.board.drop(version)
        return dict(current)

    async def prepare(self) -> None:
        """Nothing is delivered: other processes pull what they lack."""

    async def close(self) -> None:
        """Remove the published weights. A model that actors hold is not closed."""
        self.board.close()


def published(learner: Any, board: Board, known: set[str]) -> dict[str, str]:
    """Put the current versions of a learner's adapters on a board, but for those that are
    ``known`` to be there; the version of each adapter."""
    current: dict[str, str] = {}
    for name in learner.adapters:
        version = learner.lease(name)
        try:
            if version not in known:
                board.put(version, learner)
        finally:
            learner.release(version)
        current[name] = version
    return current


def _same(model: RayModel) -> RayModel:
    """What a :class:`PublishedModel` is in another process if actors hold the model."""
    return model


_BASES: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Base models of this process by the key of a published model. A team is sent again in every
iteration; a base model is freed with the last copy that uses it."""


class PublishedCopy:
    """A :class:`PublishedModel` in another process: the base model of that process, which pulls the
    published versions. An adapter's name without a version means the version that was current when
    this object was pickled.
    """

    def __init__(
        self,
        key: str,
        name: str,
        make: Callable[[], Any],
        board: Board,
        current: Mapping[str, str],
    ) -> None:
        """
        Args:
            key: identifies the published model, so that a process makes its base model once.
            name: the name of the model.
            make: makes the base model.
            board: where the versions are.
            current: the version of each adapter.
        """
        self.name = name
        self._key, self._make, self._board, self._current = key, make, board, current
        self._made: Any = None
        self._book = book_of(current)
        self._pulled: set[str] = set()
        """Leased versions that the base model holds for this object."""

    def __reduce__(self) -> tuple[Any, ...]:
        return PublishedCopy, (self._key, self.name, self._make, self._board, self._current)

    def __repr__(self) -> str:
        return f"PublishedCopy('{self.name}')"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One completion for each request, in order; see :class:`swarm_ui.model.ChatModel`."""
        async with self._held(requests) as exact:
            done: list[Completion] = await self._base.generate(exact)
        return done

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        async with self._held(requests) as exact:
            scores: list[float] = await self._base.score(exact, replies)
        return scores

    def lease(self, adapter: str) -> str:
        """Keep the current version of an adapter available until :meth:`release`, and return it;
        see :class:`swarm_ui.model.VersionedModel`."""
        return self._book.lease(adapter)

    def release(self, version: str) -> None:
        """End the lease of a version; see :class:`swarm_ui.model.VersionedModel`."""
        self._book.release(version)
        if version in self._pulled and not self._book.leased(version):
            self._pulled.discard(version)
            self._base.release(version)

    @property
    def _base(self) -> Any:
        """The base model of this process."""
        if self._made is None:
            made = _BASES.get(self._key)
            self._made = _BASES[self._key] = self._make() if made is None else made
        return self._made

    @asynccontextmanager
    async def _held(self, requests: Sequence[Request]) -> AsyncIterator[list[Request]]:
        """The requests, each for an exact version that the base model has inside the block."""
        with at_leased_versions(self, requests) as exact:
            for version in {request.adapter for request in exact} - {None}:
                assert version is not None
                if version not in self._pulled:
                    await pull(self._base, version, self._board)
                    if version in self._pulled:  # by another request meanwhile
                        self._base.release(version)
                    self._pulled.add(version)
            yield exact
