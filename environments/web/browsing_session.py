"""Sessions: tabs that share cookies, storage and downloads."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from swarm_ui.environments.miniwob.cdp import CALL_TIMEOUT, Connection, Rejected, Reply
from swarm_ui.environments.web.hosts import AllowedHosts
from swarm_ui.environments.web.tab import Failed, Tab
from swarm_ui.errors import ConfigError, EnvironmentFault

QUIET = 0.15
"""Seconds without loading after which a page counts as settled."""
BEGIN = 0.5
"""Seconds in which a page begins the requests that belong to an action."""
SETTLE_LIMIT = 5.0
"""Seconds after which a page is read although it is still loading."""
MOST_TABS = 12
MOST_SAID = 5
"""Dialogs of a tab whose texts are in the note of one step."""
MOST_DOWNLOAD = 50_000_000
"""Bytes; a larger download is stopped."""
MOST_DOWNLOADS = 20
"""Downloads of a session; further ones are stopped."""


class Session:
    """Tabs that share cookies, storage and downloads. Sessions share nothing with each other."""

    def __init__(
        self,
        connection: Connection,
        context: str,
        size: tuple[int, int],
        allowed: AllowedHosts,
        home: Path,
    ) -> None:
        """``home``: a folder for downloads, which ends with the browser."""
        self._connection, self._size, self.allowed = connection, size, allowed
        self.context = context
        self.tabs: list[Tab] = []
        self.downloads: dict[str, Path] = {}
        """Complete downloads, by the names that the site gave them."""
        self.notes: list[str] = []
        """Notes since the last :meth:`take_notes`: refused requests, dialogs and downloads."""
        self._folder = Path(tempfile.mkdtemp(prefix="downloads-", dir=home))
        self._arriving: dict[str, str] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._targets: set[str] = set()
        """All tabs so far. One that only starts a download may be closed before it is open."""
        self._gone: set[str] = set()
        """Tabs that were closed while they were being opened."""
        self._lost = ""
        self._front = 0

    @property
    def front(self) -> Tab:
        """The active tab."""
        if not self.tabs:
            raise EnvironmentFault(self._lost or "the session has no tab")
        return self.tabs[self._front]

    async def start(self) -> None:
        """Open the first tab."""
        await self._connection.call(
            "Browser.setDownloadBehavior",
            behavior="allowAndName",
            browserContextId=self.context,
            downloadPath=str(self._folder),
            eventsEnabled=True,
        )
        await self.new_tab()

    async def set_cookies(self, cookies: Sequence[Mapping[str, object]]) -> None:
        """Set cookies, in DevTools' form."""
        await self._connection.call(
            "Storage.setCookies", cookies=list(cookies), browserContextId=self.context
        )

    async def new_tab(self) -> None:
        """Open an empty tab and activate it. Raises ``ConfigError`` if there are too many."""
        if len(self.tabs) >= MOST_TABS:
            raise ConfigError(f"there are {MOST_TABS} tabs already; close one")
        made = await self._connection.call(
            "Target.createTarget", url="about:blank", browserContextId=self.context
        )
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                while not self._lost and all(tab.target != made["targetId"] for tab in self.tabs):
                    await asyncio.sleep(0.005)
                    await self._opened()
        except TimeoutError as error:  # such as: the page opened the last possible tab meanwhile
            raise EnvironmentFault(f"a new tab did not open in {CALL_TIMEOUT:.0f} s") from error

    async def keep_tab(self) -> None:
        """Open an empty tab if the page has closed the last one."""
        if not self.tabs:
            await self.new_tab()

    async def switch(self, place: int) -> None:
        """Bring a tab to the front."""
        self._front = place
        await self.front.call("Page.bringToFront")

    async def close_tab(self) -> None:
        """Close the active tab. Raises ``ConfigError`` if it is the only one."""
        if len(self.tabs) == 1:
            raise ConfigError("the only tab cannot be closed")
        gone = self.front
        self._closed(gone.target)
        await self._connection.call("Target.closeTarget", targetId=gone.target)
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
            if any(tab.loading for tab in self.tabs):
                horizon = clock() + BEGIN
            if self._arriving or any(tab.busy(horizon) for tab in self.tabs):
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
        for tab in self.tabs:
            if tab.refused:
                which = ", ".join(dict.fromkeys(tab.refused[:3]))
                self.notes.append(f"refused: {which} (allowed: {self.allowed})")
            said = [f"the page said: {' '.join(text.split())}" for text in tab.dialogs]
            more = [f"and {len(said) - MOST_SAID} more dialogs"] if len(said) > MOST_SAID else []
            self.notes += [*said[:MOST_SAID], *more]
            tab.refused.clear()
            tab.dialogs.clear()
        notes, self.notes = self.notes, []
        return "; ".join(notes)

    async def close(self) -> None:
        """End the session and remove its downloads."""
        self._lost = self._lost or "the session is closed"
        for tab in self.tabs:
            tab.forget(self._lost)
        if not self._connection.lost:
            gone = self._connection.post(
                "Target.disposeBrowserContext", browserContextId=self.context
            )
            await asyncio.wait([gone])
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    # -- events of the browser ----------------------------------------------------------------

    def event(self, method: str, params: Reply) -> None:
        """Take an event of the browser, of this session or of another."""
        info = params.get("targetInfo", {})
        if method == "Target.targetCreated" and info.get("browserContextId") == self.context:
            if info["type"] == "page":
                self._found(info["targetId"])
        elif method == "Target.targetInfoChanged":
            for tab in self.tabs:
                if tab.target == info["targetId"]:
                    tab.url = info["url"]
        elif method == "Target.targetDestroyed":
            self._closed(params["targetId"])
        elif method == "Browser.downloadWillBegin":
            frame = params["frameId"]
            if frame in self._targets or any(tab.owns(frame) for tab in self.tabs):
                self._arriving[params["guid"]] = _safe_name(params["suggestedFilename"])
                if len(self.downloads) + len(self._arriving) > MOST_DOWNLOADS:
                    self._stop_download(params["guid"])
        elif method == "Browser.downloadProgress" and params["guid"] in self._arriving:
            self._arrived(params)

    def lose(self, reason: str) -> None:
        """Record that a tab could not be opened, so the session cannot continue."""
        self._lost = self._lost or reason

    def _found(self, target: str) -> None:
        """Take over a tab that was opened, or close it if there are too many."""
        if len(self.tabs) + len(self._opening) < MOST_TABS:
            self._targets.add(target)
            self._opening[target] = asyncio.create_task(self._open(target))
            return
        refusal = f"tabs were not opened: there are {MOST_TABS} already"
        self.notes += [refusal] * (refusal not in self.notes)
        self._connection.post("Target.closeTarget", targetId=target)

    async def _open(self, target: str) -> None:
        try:
            tab = await Tab.attach(self._connection, target, self._size, self.allowed)
        except EnvironmentFault as error:
            if not await self._has_closed(target):
                self.lose(f"a tab could not be opened: {error}")
            return
        if target in self._gone or self._lost:
            tab.forget(self._lost or "the tab is closed")
            return
        self.tabs.append(tab)
        self._front = len(self.tabs) - 1

    async def _has_closed(self, target: str) -> bool:
        """Whether a tab is closed, although the event may not have come yet."""
        if target in self._gone:
            return True
        try:
            await self._connection.call("Target.getTargetInfo", targetId=target)
        except Rejected:
            return True
        except EnvironmentFault:  # the browser does not answer
            return False
        return False

    async def _opened(self) -> None:
        """Wait for the tabs that are being opened."""
        while self._opening:
            await asyncio.gather(*self._opening.values())
            self._opening = {t: task for t, task in self._opening.items() if not task.done()}

    def _closed(self, target: str) -> None:
        if target in self._opening:
            self._gone.add(target)
        for place, tab in enumerate(self.tabs):
            if tab.target == target:
                tab.forget("the tab is closed")
                del self.tabs[place]
                self._front = max(0, min(self._front - (place <= self._front), len(self.tabs) - 1))
                return

    def _arrived(self, params: Reply) -> None:
        guid, state = params["guid"], params["state"]
        if state == "inProgress":
            if max(params["totalBytes"], params["receivedBytes"]) > MOST_DOWNLOAD:
                self._stop_download(guid)
            return
        name = self._arriving.pop(guid)
        if state == "completed":
            self.downloads[name] = self._folder / guid
            self.notes.append(f"downloaded {name} ({params['receivedBytes']:,.0f} bytes)")
        else:
            self.notes.append(f"the download of {name} was stopped")

    def _stop_download(self, guid: str) -> None:
        self._connection.post("Browser.cancelDownload", guid=guid, browserContextId=self.context)


def _safe_name(suggested: str) -> str:
    """A file name without folders."""
    return re.sub(r"[\x00-\x1f/\\]", "_", suggested)[-100:] or "download"
