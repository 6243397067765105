"""One Chromium for the pages of many tests: its start costs more CPU time than most of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from swarm_ui.environments.miniwob.browser import Browser

T = TypeVar("T")


class SharedBrowser:
    """A running browser that the event loop of any test can use.

    It runs in the loop of a thread of its own. Its pages draw by themselves.
    """

    def __init__(self, binary: Path) -> None:
        self.binary = binary
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
        self._thread.start()
        self._browser = self._there(Browser.launch(binary, on_request=False)).result()

    def close(self) -> None:
        """End the browser and its thread."""
        self._there(self._browser.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def connection(self) -> Self:
        """What calls and listens, as of a :class:`Browser`."""
        return self

    async def call(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        """Send one command and return its result."""
        calling = self._browser.connection.call(method, session, **params)
        return await asyncio.wrap_future(self._there(calling))

    def listen(self, session: str, listener: Callable[[str, dict[str, Any]], None]) -> None:
        """Pass the events of a session on, in the browser's thread."""
        self._browser.connection.listen(session, listener)

    @asynccontextmanager
    async def page(self) -> AsyncIterator[tuple[str, str]]:
        """A page with a profile of its own: its session, and the id of the profile."""
        profile = (await self.call("Target.createBrowserContext"))["browserContextId"]
        try:
            target = await self.call(
                "Target.createTarget", url="about:blank", browserContextId=profile
            )
            attached = await self.call(
                "Target.attachToTarget", targetId=target["targetId"], flatten=True
            )
            yield attached["sessionId"], profile
            self._browser.connection.forget(attached["sessionId"], "the page was closed")
        finally:
            await self.call("Target.disposeBrowserContext", browserContextId=profile)

    def _there(self, doing: Coroutine[Any, Any, T]) -> Any:
        return asyncio.run_coroutine_threadsafe(doing, self._loop)
