"""The published versions in the memory of a model that is not in the process of the learner."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, ModelError, ModelUnavailable
from swarm_ui.model import ChatModel, Request, VersionedModel
from swarm_ui.nodes.models.leases import give_up, served_name
from swarm_ui.nodes.models.loop_locks import LoopLocks
from swarm_ui.nodes.models.published_version import PublishedVersion, published_in


class VersionMissing(ModelUnavailable):
    """A version is not published (yet), or this process has not received its location."""


class PublishedAdapters:
    """Loads published versions into a model when they are asked, and removes older ones."""

    def __init__(self, model: ChatModel, kept: int, folder: Path | None = None) -> None:
        """
        Args:
            model: loads a version under its own number (``load_version``).
            kept: versions of each adapter that stay in memory although no request uses them.
            folder: a folder in which published versions are found by name, in addition to those
                from :meth:`receive`.
        """
        self.model: Any = model
        self._folder, self._kept = folder, kept
        names = getattr(model, "adapters", None)
        self.own: dict[str, str] | None = None
        """The version of each adapter that the model had from the start. It stays."""
        if names is not None and isinstance(model, VersionedModel):
            self.own = {name: model.lease(name) for name in names}
        self._known: Mapping[str, PublishedVersion] = {}
        self._loaded: dict[str, str] = {}
        """The digest of each version in memory, in the order of last use."""
        self._in_use: Counter[str] = Counter()
        self._loading = LoopLocks()

    @property
    def loaded(self) -> tuple[str, ...]:
        """The published versions in memory."""
        return tuple(self._loaded)

    def receive(self, published: Mapping[str, PublishedVersion]) -> None:
        """Replace the known locations of versions. Versions in memory stay."""
        self._known = published

    def lease(self, version: str) -> None:
        """Keep a version in memory from its first request until :meth:`release`."""
        self._in_use[version] += 1

    def release(self, version: str) -> None:
        """End a lease. Raises ``ModelError`` if there is none."""
        give_up(self._in_use, version)

    @asynccontextmanager
    async def available(self, requests: Sequence[Request]) -> AsyncIterator[list[Request]]:
        """The requests as the model reads them. Their versions stay in memory inside the block.

        Raises:
            VersionMissing: a version is not published (yet).
            ModelError: a version cannot be read, or does not fit the model.
        """
        versions = {r.adapter for r in requests if self._is_published(r.adapter)}
        held = sorted(version for version in versions if version is not None)
        self._in_use.update(held)
        try:
            for version in held:
                await self._load(version)
            yield [self._asked(request) for request in requests]
        finally:
            self._in_use.subtract(held)
            if self._unneeded():
                await self._drop()

    def _asked(self, request: Request) -> Request:
        """The request, with the version if it names one of the model's own adapters without one."""
        version = (self.own or {}).get(request.adapter or "")
        return request if version is None else msgspec.structs.replace(request, adapter=version)

    def _is_published(self, adapter: str | None) -> bool:
        if adapter is None or self.own is None:
            return False
        return adapter not in self.own and adapter not in self.own.values()

    def _is_loaded(self, version: str) -> bool:
        """Whether a version is in memory, with the weights that are published."""
        known = self._known.get(version)
        digest = self._loaded.get(version)
        return digest is not None and (known is None or known.digest == digest)

    async def _load(self, version: str) -> None:
        if not self._is_loaded(version):
            async with self._loading.current():
                if not self._is_loaded(version):
                    await self._read(version)
        self._loaded[version] = self._loaded.pop(version)  # now the one used last

    async def _read(self, version: str) -> None:
        found = self._known.get(version)
        if found is None and self._folder is not None:
            found = published_in(self._folder, version)
        if found is None:
            raise self._missing(version)
        if version in self._loaded:
            await self._forget(version)
        try:
            with found.unpacked() as folder:
                made = self.model.load_version(version, folder)
                if inspect.isawaitable(made):
                    await made
        except (OSError, ConfigError) as error:
            raise ModelError(
                f"cannot load the published {version} of '{self.model.name}' in this process: "
                f"{error}. To do: publish it in a folder that all machines see under the same "
                "path, or publish it without a folder, so that its files are sent"
            ) from error
        self.model.lease(version)
        self._loaded[version] = found.digest

    def _missing(self, version: str) -> VersionMissing:
        if self._folder is not None:
            return VersionMissing(
                f"model '{self.model.name}': expected the adapter {version} in "
                f"'{self._folder / served_name(version)}', which is not on this machine. Publish "
                "it in a folder that all machines read under the same path"
            )
        known = ", ".join([*(self.own or {}).values(), *self._known]) or "none"
        return VersionMissing(
            f"model '{self.model.name}': expected an adapter out of: {known}; got '{version}'. "
            "Publish it, or give hold_model the folder of published adapters"
        )

    async def _forget(self, version: str) -> None:
        del self._loaded[version]
        self.model.release(version)
        unload = getattr(self.model, "unload_version", None)  # of models that keep what is released
        if unload is not None:
            await unload(version)

    def _unneeded(self) -> list[str]:
        """The versions that no request uses and that are not among the ``kept`` newest ones of
        their adapter."""
        recent: Counter[str] = Counter()
        found = []
        for version in reversed(self._loaded):
            name = version.rpartition("@")[0]
            recent[name] += 1
            if recent[name] > self._kept and not self._in_use[version]:
                found.append(version)
        return found

    async def _drop(self) -> None:
        """Remove the versions that are not needed. The lock prevents other coroutines from loading
        them at the same time."""
        async with self._loading.current():
            while unneeded := self._unneeded():
                await self._forget(unneeded[0])
