"""A model in a process of its own, which answers the requests of many others.

Ray runs :class:`HeldModel` as an actor. The model has a thread with an event loop of its own, so
that the actor accepts requests during a forward pass. These requests form the next batch.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatModel, Completion, Request, ScoringModel, close_model
from swarm_ui.nodes.models.published_adapters import PublishedAdapters
from swarm_ui.nodes.models.published_version import PublishedVersion

T = TypeVar("T")

Factory = Callable[[], ChatModel | Awaitable[ChatModel]]
"""Makes the model in the process that holds it."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a held model for other processes."""

    name: str
    scores: bool
    """Whether it can compute the probability of a given reply."""
    adapters: dict[str, str] | None
    """The version of each adapter that the factory loaded. ``None``: the model has no versions, so
    requests name adapters without a version."""


class HeldModel:
    """Holds one model. It is made at the first request, and again after a restart of the actor."""

    def __init__(
        self, factory: Factory, adapters: Path | None, *, kept: int, linger: float
    ) -> None:
        """
        Args:
            factory: makes the model, in the thread that uses it.
            adapters: folder with one sub-folder for each published version of an adapter, in
                addition to the versions from :meth:`receive`.
            kept: published versions of each adapter that stay in memory.
            linger: seconds to wait for more requests before a forward, if the model batches.
        """
        self._factory, self._folder = factory, adapters
        self._kept, self._linger = kept, linger
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="model", daemon=True)
        self._thread.start()
        self._making: asyncio.Task[tuple[ChatModel, PublishedAdapters]] | None = None

    async def ready(self) -> int:
        """The process id of the actor, which shows that the actor was placed."""
        return os.getpid()

    async def about(self) -> About:
        """Describe the model, which is made now. Raises what the factory raises."""
        return await self._in_thread(self._about())

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """See :class:`swarm_ui.model.ChatModel`. A version that is not in memory is loaded from
        the folder of published adapters."""
        return await self._in_thread(self._generate(requests))

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """Log-probability (nats) of each reply under its request; see
        :class:`swarm_ui.model.ScoringModel`."""
        return await self._in_thread(self._score(requests, replies))

    async def receive(self, published: Mapping[str, PublishedVersion]) -> None:
        """Replace the known locations of versions. After a restart, none is known, and requests
        raise :class:`~swarm_ui.nodes.models.published_adapters.VersionMissing`.
        """
        await self._in_thread(self._receive(published))

    async def versions(self) -> tuple[str, ...]:
        """The published versions that are in memory."""
        return await self._in_thread(self._versions())

    async def close(self) -> None:
        """Close the model, if it was made."""
        await self._in_thread(self._close())

    async def _in_thread(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    # -- in the model's thread ----------------------------------------------------------------

    async def _model(self) -> tuple[ChatModel, PublishedAdapters]:
        failed = self._making is not None and self._making.done() and self._making.exception()
        if self._making is None or failed:
            self._making = asyncio.ensure_future(self._make())
        return await asyncio.shield(self._making)

    async def _make(self) -> tuple[ChatModel, PublishedAdapters]:
        made = self._factory()
        model = await made if inspect.isawaitable(made) else made
        if not isinstance(model, ChatModel):
            raise ConfigError(
                f"the factory of a held model returned a {type(model).__name__}; expected a model "
                "with a name and generate(requests)"
            )
        linger = getattr(model, "set_linger", None)
        if linger is not None and self._linger > 0:
            linger(self._linger)
        return model, PublishedAdapters(model, self._kept, self._folder)

    async def _about(self) -> About:
        model, published = await self._model()
        return About(
            name=model.name, scores=isinstance(model, ScoringModel), adapters=published.own
        )

    async def _generate(self, requests: Sequence[Request]) -> list[Completion]:
        model, published = await self._model()
        async with published.available(requests) as asked:
            return await model.generate(asked)

    async def _score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        model, published = await self._model()
        assert isinstance(model, ScoringModel)
        async with published.available(requests) as asked:
            return await model.score(asked, replies)

    async def _receive(self, published: Mapping[str, PublishedVersion]) -> None:
        (await self._model())[1].receive(published)

    async def _versions(self) -> tuple[str, ...]:
        return (await self._model())[1].loaded

    async def _close(self) -> None:
        if self._making is not None:
            await close_model((await self._model())[0])
