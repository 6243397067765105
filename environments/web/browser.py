"""A Chromium that reaches only the allowed hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from swarm_ui.environments.miniwob.browser import Browser
from swarm_ui.environments.miniwob.cdp import Reply
from swarm_ui.environments.web.browsing_session import Session
from swarm_ui.environments.web.hosts import AllowedHosts

# All frames of a tab are then in one process, and one connection reads them.
_FLAGS = ("--disable-site-isolation-trials", "--disable-features=IsolateOrigins,site-per-process")


class WebBrowser:
    """A Chromium that reaches only the allowed hosts; any number of sessions share it.

    >>> async def visit() -> None:
    ...     async with WebBrowser(["shop.example"]) as browser:
    ...         environment = WebEnvironment(
    ...             "https://shop.example", "Buy milk", reward=bought, browser=browser
    ...         )
    """

    def __init__(self, allowed: Iterable[str], *, binary: Path | None = None) -> None:
        """
        Args:
            allowed: see :class:`~swarm_ui.environments.web.hosts.AllowedHosts`.
            binary: the browser; default: :func:`~swarm_ui.environments.miniwob.find_browser`.
        """
        self.allowed = AllowedHosts(allowed)
        self._binary = binary
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self._sessions: list[Session] = []

    async def __aenter__(self) -> WebBrowser:
        await self._running()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """Process number of the running browser."""
        return None if self._browser is None else self._browser.pid

    async def session(self, size: tuple[int, int]) -> Session:
        """A new session with one empty tab; starts another browser if the last one died.

        Args:
            size: width and height of the page in pixels.

        Raises:
            ConfigError: no browser is installed.
            EnvironmentFault: the browser cannot be started or gives no tab.
        """
        running = await self._running()
        connection = running.connection
        reply = await connection.call("Target.createBrowserContext", disposeOnDetach=True)
        context = reply["browserContextId"]
        session = Session(connection, context, size, self.allowed, running.home)
        self._sessions.append(session)
        try:
            await session.start()
        except BaseException:
            await self.end(session)
            raise
        return session

    async def end(self, session: Session) -> None:
        """Close a session."""
        if session in self._sessions:
            self._sessions.remove(session)
        await session.close()

    async def close(self) -> None:
        """End all sessions and the browser; safe to call twice."""
        for session in list(self._sessions):
            await self.end(session)
        browser, self._browser = self._browser, None
        if browser is not None:
            await browser.close()

    async def _running(self) -> Browser:
        async with self._starting:
            if self._browser is not None and not self._browser.alive:
                await self.close()
            if self._browser is None:
                flags = (*_FLAGS, *self.allowed.flags())
                browser = await Browser.launch(self._binary, flags=flags, on_request=False)
                browser.connection.listen("", self._event)
                try:
                    await browser.connection.call("Target.setDiscoverTargets", discover=True)
                except BaseException:  # re-raised: nobody else knows the browser
                    await browser.close()
                    raise
                self._browser = browser
            return self._browser

    def _event(self, method: str, params: Reply) -> None:
        for session in self._sessions:
            session.event(method, params)
