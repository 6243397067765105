"""Published versions in a model whose adapters are loaded and unloaded by calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from graph_fakes import in_virtual_time

from swarm_ui.model import ChatMessage, Completion, Request
from swarm_ui.nodes.models.published_adapters import PublishedAdapters
from swarm_ui.nodes.models.published_version import PublishedVersion


class Server:
    """A model that takes a second to unload a version."""

    name = "server"
    adapters = ()

    def __init__(self) -> None:
        self.loaded: set[str] = set()
        self.leased: Counter[str] = Counter()

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return []

    def lease(self, adapter: str) -> str:
        self.leased[adapter] += 1
        return adapter

    def release(self, version: str) -> None:
        self.leased[version] -= 1

    async def load_version(self, version: str, folder: Path) -> None:
        self.loaded.add(version)

    async def unload_version(self, version: str) -> None:
        await asyncio.sleep(1.0)
        self.loaded.discard(version)


def request(version: str) -> Request:
    return Request(chat=(ChatMessage("user", "hello"),), adapter=version)


def test_a_version_that_is_asked_while_it_is_unloaded_is_loaded_again() -> None:
    server = Server()
    known = {f"a@{k}": PublishedVersion(f"{k}", "", {}) for k in range(2)}

    async def ask(adapters: PublishedAdapters, version: str, seconds: float) -> bool:
        async with adapters.available([request(version)]):
            await asyncio.sleep(seconds)
            return version in server.loaded

    async def follow() -> list[bool]:
        adapters = PublishedAdapters(server, kept=1)
        adapters.receive(known)
        await ask(adapters, "a@0", 0.0)
        newer = asyncio.ensure_future(ask(adapters, "a@1", 0.5))
        await asyncio.sleep(1.0)  # the older version is being unloaded
        older = asyncio.ensure_future(ask(adapters, "a@0", 5.0))
        return [await newer, await older]

    assert in_virtual_time(follow()) == [True, True]
    assert server.leased["a@0"] == ("a@0" in server.loaded)
