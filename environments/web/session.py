"""Sessions on web sites: tabs of a browser with their requests, dialogs and downloads."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.environments.web.browser import Chromium, Rejected, Tab, Unanswered, answered, whole
from swarm_ui.environments.web.hosts import AllowedHosts, Origin, origin
from swarm_ui.errors import EnvironmentFault

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Page, Request, Response

QUIET = 0.15
"""Seconds without loading after which a page counts as settled."""
BEGIN = 0.5
"""Seconds in which a page begins the requests that belong to an action."""
SETTLE_LIMIT = 5.0
"""Seconds after which a page is read although it is still loading."""
MOST_TABS = 12
MOST_DOWNLOADS = 20
"""Of a session."""
MOST_DOWNLOAD = 50_000_000
"""Bytes; a larger download is stopped."""
MOST_NOTES = 5
"""Of one step."""
# All frames of a tab are then in one process, and one connection reads them.
_FLAGS = ("--disable-site-isolation-trials",)
_ENDLESS = frozenset({"eventsource", "websocket", "ping", "preflight"})
_DOWN = re.compile(
    r"net::ERR_(CONNECTION_(REFUSED|RESET|CLOSED|FAILED|ABORTED|TIMED_OUT)|TIMED_OUT|EMPTY_RESPONSE"
    r"|NAME_NOT_RESOLVED|ADDRESS_UNREACHABLE|INTERNET_DISCONNECTED|NETWORK_CHANGED)"
)
"""Chromium's errors of a site that is down."""


class Session:
    """Tabs that share cookies, storage and downloads. Sessions share nothing with each other."""

    def __init__(self, context: BrowserContext, allowed: AllowedHosts, folder: Path) -> None:
        """``folder``: the browser's downloads."""
        self._context, self.allowed, self._folder = context, allowed, folder
        self.tabs: list[Tab] = []
        self._front: Tab | None = None
        self.home: set[Origin] = set()
        """The site of the task, which must not be down."""
        self.downloads: dict[str, Path] = {}
        """Complete downloads, by the names that the site gave them."""
        self._begun = self._arriving = 0
        """Numbers of downloads: all, and those under way."""
        self._clock = asyncio.get_running_loop().time
        self._requests: set[Request] = set()
        """Requests under way that belong to an action: no later ones, such as polling."""
        self._loading: set[Page] = set()
        self._horizon = math.inf
        """Requests that begin later do not belong to an action."""
        self._active = 0.0
        """When the last page was loaded, or the last frame navigated."""
        self._failed: list[tuple[str, str]] = []
        """Pages that could not be opened, though their hosts are allowed, and the errors."""
        self._notes: list[str] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        context.on("page", self._found)
        context.on("dialog", self._answer)
        context.on("request", self._begins)
        context.on("response", self._responds)
        context.on("requestfinished", self._ends)
        context.on("requestfailed", self._ends)

    @property
    def front(self) -> Tab:
        """The active tab."""
        if self._front is None:
            raise EnvironmentFault("the session is closed, or has no tab")
        return self._front

    async def new_tab(self) -> None:
        """Open an empty tab and activate it."""
        await answered(self._context.new_page())

    async def keep_tab(self) -> None:
        """Open an empty tab if the page has closed the last one."""
        if not self.tabs:
            await self.new_tab()

    async def switch(self, tab: Tab) -> None:
        """Bring a tab to the front."""
        self._front = tab
        await answered(tab.page.bring_to_front())

    async def close_tab(self) -> None:
        """Close the active tab, which is not the only one."""
        page = self.front.page
        await answered(page.close())
        self._closed(page)
        await self.switch(self.front)

    async def navigate(self, url: str) -> None:
        """Begin to open a page in the active tab. If the browser refuses the address, or the
        server does not answer, :meth:`take_notes` tells it."""
        tab = self.front
        tab.status = 0
        try:
            await tab.call("Page.navigate", url=url)
        except Unanswered:
            self._failed.append((url, "net::ERR_TIMED_OUT"))
            await tab.call("Page.stopLoading")
        except Rejected as error:
            self._failed.append((url, str(error)))

    async def open(self, url: str) -> None:
        """Open a page in the active tab, and wait until it is loaded.

        Raises:
            EnvironmentFault: it could not be opened, or its server answered with an error.
        """
        await self.navigate(url)
        await self.settled()
        failed, self._failed = self._failed, []
        if failed:
            raise EnvironmentFault(_unopened(*failed[0]))
        if self.front.status >= 500:
            raise EnvironmentFault(f"{url} answers {self.front.status}")

    async def settled(self) -> None:
        """Wait until everything that an action started is loaded, at most ``SETTLE_LIMIT`` seconds.

        This includes pages, frames, and requests that begin within ``BEGIN`` seconds after the
        action or after a page that it opened. Later requests, such as polling, are ignored.

        Raises:
            EnvironmentFault: a page crashed.
        """
        self._active = start = self._clock()
        self._horizon = start + BEGIN
        while self._clock() < min(start + SETTLE_LIMIT, self._active + QUIET):
            await asyncio.sleep(0.02)
            if self._requests or self._loading or self._arriving:
                self._moves()
        self._horizon = math.inf
        self._loading.clear()
        await self.keep_tab()
        if any(tab.crashed for tab in self.tabs):
            raise EnvironmentFault("the page crashed")

    def take_notes(self) -> str:
        """What happened since the last call, on one line.

        Raises:
            EnvironmentFault: the site of the task is down. For any other address that does not
                answer, only the step is lost; otherwise an agent could mask an episode on purpose.
        """
        failed, self._failed = self._failed, []
        for url, error in failed:
            if _DOWN.fullmatch(error) and origin(url) in self.home:
                raise EnvironmentFault(_unopened(url, error))
        notes = list(dict.fromkeys([*(_unopened(*one) for one in failed), *self._notes]))
        self._notes.clear()
        more = [f"and {len(notes) - MOST_NOTES} more"] * (len(notes) > MOST_NOTES)
        return "; ".join(notes[:MOST_NOTES] + more)

    async def close(self) -> None:
        """End the session and remove its downloads."""
        with contextlib.suppress(EnvironmentFault):
            await answered(self._context.close())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- events of the browser ----------------------------------------------------------------

    def _found(self, page: Page) -> None:
        """Take over a tab that was opened, or close it if there are too many."""
        if len(self.tabs) >= MOST_TABS:
            self._notes.append(f"tabs were not opened: there are {MOST_TABS} already")
            self._later(page.close())
            return
        page.on("close", self._closed)
        page.on("download", lambda download: self._later(self._fetch(download)))
        page.on("load", self._loaded)
        page.on("framenavigated", lambda frame: self._moves())
        self._front = Tab(page)
        self.tabs.append(self._front)
        self._moves()

    def _closed(self, page: Page) -> None:
        place = next((k for k, tab in enumerate(self.tabs) if tab.page is page), None)
        if place is not None and self.tabs.pop(place) is self._front:
            self._front = self.tabs[max(0, place - 1)] if self.tabs else None
        self._loading.discard(page)
        self._forget_requests(page)

    def _moves(self) -> None:
        self._active = self._clock()

    def _loaded(self, page: Page) -> None:
        self._loading.discard(page)
        self._horizon = max(self._horizon, self._clock() + BEGIN)
        self._moves()

    def _begins(self, request: Request) -> None:
        if not self.allowed.allows(request.url):
            self._notes.append(f"refused: {whole(request.url[:500])} (allowed: {self.allowed})")
        page = _main_page(request)
        if page is not None:  # requests of the page before may never end
            self._loading.add(page)
            self._forget_requests(page)
        endless = request.resource_type in _ENDLESS or request.url.startswith(("data:", "blob:"))
        if not endless and self._clock() < self._horizon:
            self._requests.add(request)

    def _responds(self, response: Response) -> None:
        page = _main_page(response.request)
        for tab in self.tabs:
            if tab.page is page:
                tab.status = response.status

    def _ends(self, request: Request) -> None:
        self._requests.discard(request)
        page, error = _main_page(request), request.failure
        if page is None or not error:
            return
        self._loading.discard(page)
        if error != "net::ERR_ABORTED" and self.allowed.allows(request.url):
            self._failed.append((whole(request.url), error))

    def _forget_requests(self, page: Page) -> None:
        self._requests = {request for request in self._requests if _page(request) is not page}

    def _answer(self, dialog: Dialog) -> None:
        self._notes.append(f"the page said: {' '.join(whole(dialog.message[:1000]).split())}")
        self._later(dialog.accept(dialog.default_value))

    async def _fetch(self, download: Download) -> None:
        """Wait for a download, and stop it if it is too large or one too many."""
        name = re.sub(r"[\x00-\x1f/\\]", "_", whole(download.suggested_filename))[-100:]
        self._begun += 1
        self._arriving += 1
        kept, note = self._begun <= MOST_DOWNLOADS, f"the download of {name} was stopped"
        path = asyncio.ensure_future(download.path())
        try:
            while kept and not path.done():
                await asyncio.wait([path], timeout=0.1)
                # The browser does not say which of its files a download is.
                kept = all(one.stat().st_size <= MOST_DOWNLOAD for one in self._folder.iterdir())
            if kept:
                self.downloads[name] = await path
                note = f"downloaded {name} ({self.downloads[name].stat().st_size:,} bytes)"
            else:
                await download.cancel()
                await download.delete()
        finally:
            self._notes.append(note)
            self._arriving -= 1

    def _later(self, waiting: Awaitable[Any]) -> None:
        """Do something without waiting for it; a failure, such as of a page that has closed
        meanwhile, is ignored."""
        task = asyncio.ensure_future(waiting)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda task: task.cancelled() or task.exception())


class WebBrowser(Chromium):
    """A Chromium that reaches only the allowed hosts; any number of sessions share it.

    >>> async def visit() -> None:
    ...     async with WebBrowser(["shop.example"]) as browser:
    ...         environment = WebEnvironment(
    ...             "https://shop.example", "Buy milk", reward=bought, browser=browser
    ...         )
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        """``allowed``: see :class:`~swarm_ui.environments.web.hosts.AllowedHosts`."""
        self.allowed = AllowedHosts(allowed)
        super().__init__(flags=(*_FLAGS, *self.allowed.flags()))

    async def session(self, size: tuple[int, int], state: Path | None = None) -> Session:
        """A new session with one empty tab; starts another browser if the last one died.

        Args:
            size: width and height of the page in pixels.
            state: a file with cookies and local storage, as Playwright saves them.

        Raises:
            ConfigError: no browser is installed.
            EnvironmentFault: the browser cannot be started or gives no tab.
        """
        context = await self.context(size, state)
        session = Session(context, self.allowed, self.downloads)
        try:
            await session.new_tab()
        except BaseException:  # re-raised: nobody else knows the session
            await session.close()
            raise
        return session


def _unopened(url: str, error: str) -> str:
    return f"{url[:500]} cannot be opened: {error}"


def _page(request: Request) -> Page | None:
    """The page that a request belongs to; ``None`` for a worker's, and for one of a new tab."""
    from playwright.async_api import Error

    try:
        return request.frame.page
    except Error:
        return None


def _main_page(request: Request) -> Page | None:
    """The page of whose main frame a request is the document, else ``None``."""
    page = _page(request) if request.is_navigation_request() else None
    return page if page is not None and request.frame.parent_frame is None else None
