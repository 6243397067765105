"""One Chromium for the pages of many tests: its start costs more CPU time than most of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from playwright.async_api import CDPSession

from swarm_ui.environments.web.browser import Chromium, answered

T = TypeVar("T")


class SharedBrowser:
    """A running browser that the event loop of any test can use.

    It runs in the loop of a thread of its own.
    """

    def __init__(self, binary: Path) -> None:
        self.binary = binary
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._thread.start()
        self._chromium = Chromium()
        self._sessions: dict[str, CDPSession] = {"": self._there(self._root()).result()}

    def close(self) -> None:
        """End the browser and its thread."""
        self._there(self._chromium.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def call(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        """Send one DevTools command and return its result."""
        calling = answered(self._sessions[session].send(method, params))
        return await asyncio.wrap_future(self._there(calling))

    def listen(self, session: str, listener: Callable[[str, dict[str, Any]], None]) -> None:
        """Pass the events of a session on, in the browser's thread."""
        self._sessions[session].on("event", lambda told: listener(told["method"], told["params"]))

    @asynccontextmanager
    async def page(self) -> AsyncIterator[tuple[str, str]]:
        """A page with a profile of its own: its session, and the id of the profile."""
        name, profile, context = await asyncio.wrap_future(self._there(self._page()))
        try:
            yield name, profile
        finally:
            self._sessions.pop(name)
            await asyncio.wrap_future(self._there(context.close()))

    async def _root(self) -> CDPSession:
        return await (await self._chromium.start()).new_browser_cdp_session()

    async def _page(self) -> tuple[str, str, Any]:
        context = await (await self._chromium.start()).new_context(no_viewport=True)
        session = await context.new_cdp_session(await context.new_page())
        told = (await session.send("Target.getTargetInfo"))["targetInfo"]
        self._sessions[told["targetId"]] = session
        return told["targetId"], told["browserContextId"], context

    def _there(self, doing: Coroutine[Any, Any, T]) -> Any:
        return asyncio.run_coroutine_threadsafe(doing, self._loop)


async def process_of(chromium: Chromium) -> int:
    """Number of the process of the running browser."""
    session = await (await chromium.start()).new_browser_cdp_session()
    told = await session.send("SystemInfo.getProcessInfo")
    await session.detach()
    return next(int(one["id"]) for one in told["processInfo"] if one["type"] == "browser")
