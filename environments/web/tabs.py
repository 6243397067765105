"""Tabs of a browser: sessions on web sites, with their requests, dialogs and downloads."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.environments.web.browser import (
    Chromium,
    answered,
    whole,
)
from swarm_ui.environments.web.hosts import AllowedHosts
from swarm_ui.environments.web.tab import Failed, Tab
from swarm_ui.errors import ConfigError, EnvironmentFault

if TYPE_CHECKING:
    from playwright.async_api import (
        BrowserContext,
        Dialog,
        Download,
        Page,
        Request,
        Response,
    )

QUIET = 0.15
"""Seconds without loading after which a page counts as settled."""
BEGIN = 0.5
"""Seconds in which a page begins the requests that belong to an action."""
SETTLE_LIMIT = 5.0
"""Seconds after which a page is read although it is still loading."""
MOST_TABS = 12
MOST_SAID = 5
"""Dialogs of a session whose texts are in the note of one step."""
MOST_DOWNLOAD = 50_000_000
"""Bytes; a larger download is stopped."""
MOST_DOWNLOADS = 20
"""Downloads of a session; further ones are stopped."""
# All frames of a tab are then in one process, and one connection reads them.
_FLAGS = ("--disable-site-isolation-trials",)
_ENDLESS = frozenset({"eventsource", "websocket", "ping", "preflight"})
_CANCELLED = "net::ERR_ABORTED"


class Session:
    """Tabs that share cookies, storage and downloads. Sessions share nothing with each other."""

    def __init__(self, context: BrowserContext, allowed: AllowedHosts, folder: Path) -> None:
        """``folder``: the browser's downloads."""
        self._context, self.allowed, self._folder = context, allowed, folder
        self.tabs: list[Tab] = []
        self.downloads: dict[str, Path] = {}
        """Complete downloads, by the names that the site gave them."""
        self.notes: list[str] = []
        """Notes since the last :meth:`take_notes`: tabs and downloads."""
        self._dialogs: list[str] = []
        self._refused: list[str] = []
        self._arriving: set[Download] = set()
        self._numbers = count(1)
        self._requests: dict[Request, float] = {}
        """Requests under way, and when they began in the time of the event loop."""
        self._opening: dict[Page, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._lost = ""
        self._front = 0
        context.on("page", self._found)
        context.on("dialog", self._answer)
        context.on("request", self._begins)
        context.on("response", self._responds)
        context.on("requestfinished", self._ends)
        context.on("requestfailed", self._ends)

    @property
    def front(self) -> Tab:
        """The active tab."""
        if not self.tabs:
            raise EnvironmentFault(self._lost or "the session has no tab")
        return self.tabs[self._front]

    async def set_cookies(self, cookies: Sequence[Mapping[str, object]]) -> None:
        """Set cookies in Playwright's form (name, value, domain, path …)."""
        given = [dict(one) if "url" in one else {"path": "/", **one} for one in cookies]
        await answered(self._context.add_cookies(given))  # type: ignore[arg-type]

    async def new_tab(self) -> None:
        """Open an empty tab and activate it. Raises ``ConfigError`` if there are too many."""
        if len(self.tabs) >= MOST_TABS:
            raise ConfigError(f"there are {MOST_TABS} tabs already; close one")
        page = await answered(self._context.new_page())
        await self._opened()
        if all(tab.page is not page for tab in self.tabs):
            raise EnvironmentFault(self._lost or "a new tab did not open")

    async def keep_tab(self) -> None:
        """Open an empty tab if the page has closed the last one."""
        if not self.tabs:
            await self.new_tab()

    async def switch(self, place: int) -> None:
        """Bring a tab to the front."""
        self._front = place
        await answered(self.front.page.bring_to_front())

    async def close_tab(self) -> None:
        """Close the active tab. Raises ``ConfigError`` if it is the only one."""
        if len(self.tabs) == 1:
            raise ConfigError("the only tab cannot be closed")
        page = self.front.page
        await answered(page.close())
        self._closed(page)
        await self.switch(self._front)

    async def settled(self) -> None:
        """Wait until everything that an action started is loaded, at most ``SETTLE_LIMIT`` seconds.

        This includes pages, frames, and requests that begin within ``BEGIN`` seconds after the
        action or after a page that it opened. Later requests, such as polling, are ignored.

        Raises:
            EnvironmentFault: a page crashed.
        """
        clock = asyncio.get_running_loop().time
        quiet = clock()
        end, horizon = quiet + SETTLE_LIMIT, quiet + BEGIN
        while clock() < min(end, quiet + QUIET):
            await asyncio.sleep(0.02)
            await self._opened()
            loading = any(tab.loading for tab in self.tabs)
            if loading:
                horizon = clock() + BEGIN
            if loading or self._arriving or any(t < horizon for t in self._requests.values()):
                quiet = clock()
        await self.keep_tab()
        if self._lost or any(tab.crashed for tab in self.tabs):
            raise EnvironmentFault(self._lost or "the page crashed")

    def failures(self) -> list[Failed]:
        """The pages that could not be opened since the last call."""
        found = [tab.failure for tab in self.tabs if tab.failure is not None]
        for tab in self.tabs:
            tab.failure = None
        return found

    def expect_open(self, url: str) -> None:
        """Check that a page was opened.

        Raises:
            EnvironmentFault: it could not be opened, or its server answered with an error.
        """
        for failed in self.failures():
            raise EnvironmentFault(str(failed))
        if self.front.status >= 500:
            raise EnvironmentFault(f"{url} answers {self.front.status}")

    def take_notes(self) -> str:
        """The notes about the session since the last call, on one line."""
        notes, self.notes = self.notes, []
        if self._refused:
            which = ", ".join(dict.fromkeys(self._refused[:3]))
            notes.append(f"refused: {which} (allowed: {self.allowed})")
        said = [f"the page said: {' '.join(text.split())}" for text in self._dialogs]
        more = [f"and {len(said) - MOST_SAID} more dialogs"] if len(said) > MOST_SAID else []
        notes += [*said[:MOST_SAID], *more]
        self._refused.clear()
        self._dialogs.clear()
        return "; ".join(notes)

    async def close(self) -> None:
        """End the session and remove its downloads."""
        self._lost = self._lost or "the session is closed"
        with contextlib.suppress(EnvironmentFault):
            await answered(self._context.close())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- tabs that open and close -------------------------------------------------------------

    def _found(self, page: Page) -> None:
        """Take over a tab that was opened, or close it if there are too many."""
        if len(self.tabs) + len(self._opening) >= MOST_TABS:
            refusal = f"tabs were not opened: there are {MOST_TABS} already"
            self.notes += [refusal] * (refusal not in self.notes)
            self._later(page.close())
            return
        page.on("close", self._closed)
        page.on("download", lambda download: self._later(self._fetch(download)))
        page.on("websocket", lambda socket: self._refuse(socket.url))
        self._opening[page] = self._later(self._open(page))

    async def _open(self, page: Page) -> None:
        try:
            tab = await Tab.of(page)
        except EnvironmentFault as error:
            if not page.is_closed():
                self._lost = self._lost or f"a tab could not be opened: {error}"
            return
        if not page.is_closed():
            self.tabs.append(tab)
            self._front = len(self.tabs) - 1

    async def _opened(self) -> None:
        """Wait for the tabs that are being opened."""
        while self._opening:
            await asyncio.gather(*self._opening.values())
            self._opening = {p: task for p, task in self._opening.items() if not task.done()}

    def _closed(self, page: Page) -> None:
        for place, tab in enumerate(self.tabs):
            if tab.page is page:
                del self.tabs[place]
                self._front = max(0, min(self._front - (place <= self._front), len(self.tabs) - 1))
                break
        self._forget_requests(page)

    # -- requests -----------------------------------------------------------------------------

    def _begins(self, request: Request) -> None:
        self._refuse(request.url)
        page = _main_page(request)
        if page is not None:  # requests of the page before may never end
            self._forget_requests(page)
        if request.resource_type not in _ENDLESS and not request.url.startswith(("data:", "blob:")):
            self._requests[request] = asyncio.get_running_loop().time()

    def _responds(self, response: Response) -> None:
        tab = self._tab_opening(response.request)
        if tab is not None:
            tab.status = response.status

    def _ends(self, request: Request) -> None:
        self._requests.pop(request, None)
        error, tab = request.failure, self._tab_opening(request)
        if error and error != _CANCELLED and tab and self.allowed.allows(request.url):
            tab.failure = Failed(whole(request.url), error)

    def _tab_opening(self, request: Request) -> Tab | None:
        """The tab whose main page a request opens."""
        page = _main_page(request)
        return next((tab for tab in self.tabs if tab.page is page), None)

    def _forget_requests(self, page: Page) -> None:
        self._requests = {r: t for r, t in self._requests.items() if _page(r) is not page}

    def _refuse(self, url: str) -> None:
        if not self.allowed.allows(url):
            self._refused.append(whole(url[:500]))

    # -- dialogs and downloads ----------------------------------------------------------------

    def _answer(self, dialog: Dialog) -> None:
        self._dialogs.append(whole(dialog.message[:1000]))
        self._later(dialog.accept(dialog.default_value))

    async def _fetch(self, download: Download) -> None:
        """Wait for a download, and stop it if it is too large or one too many."""
        from playwright.async_api import Error

        name = _safe_name(download.suggested_filename)
        self._arriving.add(download)
        try:
            path = asyncio.ensure_future(download.path())
            refused = next(self._numbers) > MOST_DOWNLOADS
            while not refused and not (await asyncio.wait([path], timeout=0.1))[0]:
                # The browser does not say which of its files a download is.
                sizes = [file.stat().st_size for file in self._folder.iterdir()]
                refused = max(sizes, default=0) > MOST_DOWNLOAD
            if refused or (await path).stat().st_size > MOST_DOWNLOAD:
                await download.cancel()
                await download.delete()
                self.notes.append(f"the download of {name} was stopped")
            else:
                self.downloads[name] = await path
                size = self.downloads[name].stat().st_size
                self.notes.append(f"downloaded {name} ({size:,} bytes)")
        except Error:
            self.notes.append(f"the download of {name} was stopped")
        finally:
            self._arriving.discard(download)

    def _later(self, waiting: Awaitable[Any]) -> asyncio.Task[Any]:
        """Do something without waiting for it; a failure is ignored."""
        task = asyncio.ensure_future(waiting)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()


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
            binary: the browser; default: :func:`~swarm_ui.environments.web.find_browser`.
        """
        self.allowed = AllowedHosts(allowed)
        self._chromium = Chromium(binary, flags=(*_FLAGS, *self.allowed.flags()))
        self._sessions: list[Session] = []

    async def __aenter__(self) -> WebBrowser:
        await self._chromium.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """Process number of the running browser."""
        return self._chromium.pid

    async def session(self, size: tuple[int, int]) -> Session:
        """A new session with one empty tab; starts another browser if the last one died.

        Args:
            size: width and height of the page in pixels.

        Raises:
            ConfigError: no browser is installed.
            EnvironmentFault: the browser cannot be started or gives no tab.
        """
        context = await self._chromium.context(size)
        session = Session(context, self.allowed, self._chromium.downloads)
        self._sessions.append(session)
        try:
            await session.new_tab()
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
        await self._chromium.close()


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


def _safe_name(suggested: str) -> str:
    """A file name without folders."""
    return re.sub(r"[\x00-\x1f/\\]", "_", whole(suggested))[-100:] or "download"
