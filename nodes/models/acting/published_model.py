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

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from swarm_ui.model import Completion, Request
from swarm_ui.nodes.models.acting.board import (
    Board,
    FolderBoard,
    Published,
    PullingModel,
    RayBoard,
    ScoringCopy,
)
from swarm_ui.nodes.models.acting.ray_model import RayModel


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
        self.counters: Any = learner.counters
        self.adapters: tuple[str, ...] = learner.adapters
        self._elsewhere = elsewhere
        self.board: Board = RayBoard() if folder is None else FolderBoard(folder)
        self._published = Published(learner, self.board, kept)
        self._key = uuid4().hex

    def __repr__(self) -> str:
        return f"PublishedModel('{self.name}', {self.board!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        current = self._published.current
        if isinstance(self._elsewhere, RayModel):
            return _same, (self._elsewhere.with_versions(current, self.board),)
        return LoadedCopy, (self._key, self.name, self._elsewhere, self.board, current)

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
        current = self._published.publish()
        for version in self._published.there - self._published.needed:
            self._published.drop(version)
        return current

    async def close(self) -> None:
        """Remove the published weights. A model that actors hold is not closed."""
        self.board.close()


def _same(model: RayModel) -> RayModel:
    """What a :class:`PublishedModel` is in another process if actors hold the model."""
    return model


_BASES: WeakValueDictionary[str, PullingModel] = WeakValueDictionary()
"""Base models of this process by the key of a published model. A team is sent again in every
iteration; a base model is freed with the last copy that uses it."""


class LoadedCopy(ScoringCopy):
    """A :class:`PublishedModel` in another process: the base model of that process, which pulls the
    published versions."""

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
        super().__init__(current)
        self.name = name
        self._key, self._make, self._board = key, make, board
        self._base = _BASES.get(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return LoadedCopy, (self._key, self.name, self._make, self._board, self.current)

    async def _ask(self, method: str, requests: Sequence[Request], *others: object) -> Any:
        if self._base is None:
            known = _BASES.get(self._key)
            self._base = _BASES[self._key] = known or PullingModel(self._make())
        return await self._base.ask(method, self._board, requests, *others)
