"""One tab of a browser: its page, and DevTools' commands to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm_ui.action import Action
from swarm_ui.environments.web import input
from swarm_ui.environments.web.browser import (
    DevTools,
    Rejected,
    Reply,
    Unanswered,
    value_of,
    whole,
)
from swarm_ui.environments.web.input import Point

if TYPE_CHECKING:
    from playwright.async_api import Page


class Failed(NamedTuple):
    """A page that could not be opened."""

    url: str
    error: str

    def __str__(self) -> str:
        return f"{self.url[:500]} cannot be opened: {self.error}"


class Tab:
    """A tab. Its calls raise :class:`EnvironmentFault` if the page crashed or does not answer."""

    def __init__(self, devtools: DevTools, target: str) -> None:
        self.page, self._devtools = devtools.page, devtools
        self.target = target
        """DevTools' name of the tab, and of its main frame."""
        self.title = ""
        self.failure: Failed | None = None
        """The page that could not be opened, though its host is allowed."""
        self.status = 0
        """HTTP status of the page; 0 if it is not known."""
        self._loading: set[str] = set()
        told = devtools.session
        told.on("Page.frameStartedLoading", lambda event: self._loading.add(event["frameId"]))
        for name in ("Page.frameStoppedLoading", "Page.frameDetached"):
            told.on(name, lambda event: self._loading.discard(event["frameId"]))

    @classmethod
    async def of(cls, page: Page) -> Tab:
        devtools = await DevTools.of(page)
        told = await devtools.call("Target.getTargetInfo")
        tab = cls(devtools, told["targetInfo"]["targetId"])
        await asyncio.gather(tab.call("Page.enable"), tab.call("DOM.enable"))
        return tab

    @property
    def url(self) -> str:
        return whole(self.page.url)

    @property
    def crashed(self) -> bool:
        return self._devtools.crashed

    @property
    def loading(self) -> bool:
        """Whether a page or a frame is loading."""
        return bool(self._loading)

    async def call(self, method: str, **params: object) -> Reply:
        """Send a DevTools command to the page. Raises ``Rejected`` if the browser cannot do it."""
        return await self._devtools.call(method, **params)

    async def navigate(self, url: str) -> None:
        """Begin to open a page. If the browser refuses the address, or the server does not answer,
        this is the :attr:`failure`."""
        self.failure, self.status = None, 0
        try:
            await self.call("Page.navigate", url=url)
        except Unanswered:
            self.failure = Failed(url, "net::ERR_TIMED_OUT")
            await self.call("Page.stopLoading")
        except Rejected as error:
            self.failure = Failed(url, str(error))

    async def travel(self, places: int) -> bool:
        """Go back (-1) or forward (1) in the tab's history; return whether this was possible."""
        history = await self.call("Page.getNavigationHistory")
        at = history["currentIndex"] + places
        entries = history["entries"]
        if not 0 <= at < len(entries) or entries[at]["url"] == "about:blank":
            return False
        self.failure = None
        await self.call("Page.navigateToHistoryEntry", entryId=entries[at]["id"])
        return True

    async def on_node(self, node: int, function: str, *arguments: object) -> Any:
        """The result of a JavaScript function that is called with an element as ``this``.

        Raises:
            Rejected: the element is gone.
        """
        found = await self.call("DOM.resolveNode", backendNodeId=node, objectGroup="swarm-ui")
        owner = found["object"]["objectId"]
        return await self._devtools.function(owner, function, *arguments, gesture=True)

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, which sees the page's document.

        It runs in an isolated world: the page's scripts can neither see nor change it.

        Raises:
            ScriptError: the expression fails.
        """
        world = await self.call("Page.createIsolatedWorld", frameId=self.target, worldName="ours")
        reply = await self.call(
            "Runtime.evaluate",
            expression=expression,
            contextId=world["executionContextId"],
            returnByValue=True,
            awaitPromise=True,
        )
        return value_of(reply)

    async def perform(self, action: Action, at: Point = (0, 0), to: Point | None = None) -> None:
        """Do an action with mouse and keyboard; see :func:`input.perform`."""
        page, session = self.page, self._devtools.session
        await self._devtools.done(input.perform(page, session, action, at, to))

    async def picture(self) -> bytes:
        """The visible part of the page as a PNG file."""
        return await self._devtools.done(self.page.screenshot())
