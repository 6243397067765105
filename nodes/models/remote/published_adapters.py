"""Versions of adapters that a learner writes to a folder, and that models in other processes load.

The folder has one sub-folder for each version, in peft's format, with the name that a server would
give it: ``agent_2-v7`` for ``agent_2@7``, or ``agent_2-v7-<digest of the weights>``. A version is
written once and never changed, so a process that was restarted reads it again.
"""

from __future__ import annotations

import glob
import inspect
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.model import ChatModel, Completion, Request, VersionedModel
from swarm_ui.nodes.models.openai.served_adapters import served_name

_DIGEST = re.compile(r"[0-9a-f]{8,64}")


def published_folder(root: Path, version: str) -> Path | None:
    """The folder of a published version; the newest one, if runs published it with several weights;
    ``None``: there is none."""
    name = served_name(version)
    exact = root / name
    if exact.is_dir():
        return exact
    found = [path for path in root.glob(f"{glob.escape(name)}-*") if path.is_dir()]
    fits = [path for path in found if _DIGEST.fullmatch(path.name[len(name) + 1 :])]
    return max(fits, key=lambda path: path.stat().st_mtime, default=None)


class PublishedAdapters:
    """The published versions in the memory of one model.

    The model numbers its versions itself, so a published version has two names here: the published
    one, which requests and completions have, and that of the model.
    """

    def __init__(self, model: ChatModel, folder: Path | None, kept: int) -> None:
        """``kept``: versions of each adapter that stay in memory although no request uses them."""
        self._model: Any = model
        self._folder, self._kept = folder, kept
        names = getattr(model, "adapters", None)
        self.own: dict[str, str] | None = None
        """The version of each adapter that the model had from the start. It stays."""
        if names is not None and isinstance(model, VersionedModel):
            self.own = {name: model.lease(name) for name in names}
        self._loaded: dict[str, str] = {}
        """The model's name of each published version; the one used last is the last."""
        self._published: dict[str, str] = {}
        self._in_use: Counter[str] = Counter()

    @property
    def loaded(self) -> tuple[str, ...]:
        """The published versions in memory."""
        return tuple(self._loaded)

    @asynccontextmanager
    async def available(self, requests: Sequence[Request]) -> AsyncIterator[list[Request]]:
        """The requests as the model reads them. Their versions stay in memory inside the block.

        Raises:
            ModelUnavailable: a version is not published (yet).
            ModelError: there is no folder of published versions.
            ConfigError: an adapter does not fit the model.
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
            self._drop()

    def named(self, completion: Completion) -> Completion:
        """The completion with the published name of its version, inside :meth:`available`."""
        published = self._published.get(completion.adapter or "")
        if published is None:
            return completion
        return msgspec.structs.replace(completion, adapter=published)

    def _asked(self, request: Request) -> Request:
        if not self._is_published(request.adapter):
            return request
        return msgspec.structs.replace(request, adapter=self._loaded[request.adapter or ""])

    def _is_published(self, adapter: str | None) -> bool:
        if adapter is None or self.own is None:
            return False
        return adapter not in self.own and adapter not in self.own.values()

    async def _load(self, version: str) -> None:
        if version in self._loaded:
            self._loaded[version] = self._loaded.pop(version)  # now the one used last
            return
        if self._folder is None:
            known = ", ".join((self.own or {}).values()) or "none"
            raise ModelError(
                f"model '{self._model.name}': expected an adapter out of: {known}; got "
                f"'{version}'. Give hold_model the folder of published adapters"
            )
        folder = published_folder(self._folder, version)
        if folder is None:
            raise ModelUnavailable(
                f"model '{self._model.name}': expected the adapter {version} in "
                f"'{self._folder / served_name(version)}', which is not on this machine. Publish "
                "it in a folder that all machines read under the same path"
            )
        name = version.rpartition("@")[0] or version
        made: str | Awaitable[str] = self._model.load_adapter(folder, name)
        local = await made if inspect.isawaitable(made) else made
        self._model.lease(local)
        self._loaded[version], self._published[local] = local, version

    def _drop(self) -> None:
        """Remove the versions that are neither in use nor among the last of their adapter."""
        recent: Counter[str] = Counter()
        for version in reversed(list(self._loaded)):
            name = version.rpartition("@")[0]
            recent[name] += 1
            if recent[name] > self._kept and not self._in_use[version]:
                local = self._loaded.pop(version)
                del self._published[local]
                self._model.release(local)
