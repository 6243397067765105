"""A report opened in a real browser, with everything that it logs and asks for."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from play_page import Tab
from shared_browser import SharedBrowser

READY = "!!document.querySelector('#viewer .scene')"


class ReportTab(Tab):
    """Also keeps the addresses of all requests, and knows the id of its profile."""

    def __init__(self, browser: SharedBrowser, session: str, profile: str) -> None:
        self.requests: list[str] = []
        self.profile = profile
        super().__init__(browser, session)

    def _event(self, method: str, params: dict[str, Any]) -> None:
        super()._event(method, params)
        if method == "Network.requestWillBeSent":
            self.requests.append(str(params["request"]["url"]))

    async def press(self, key: str) -> None:
        """A key of the keyboard; it has a text if it is one character."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def words(self, selector: str) -> str:
        """What stands there, as a person reads it."""
        return str(await self.js(f"document.querySelector({selector!r})?.innerText ?? ''"))

    async def whole(self, path: Path) -> None:
        """A picture of the page from top to bottom."""
        shot = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def opened_report(
    browser: SharedBrowser, path: Path, *, address: str = "", width: int = 1280, dark: bool = False,
    ready: str = READY, alone: bool = True,
) -> AsyncIterator[ReportTab]:  # fmt: skip
    """Open a report file; at the end it must have logged nothing and asked for nothing else.

    ``alone=False``: a page of several files, for which that does not hold.
    """
    async with browser.page() as (session, profile):
        tab = ReportTab(browser, session, profile)
        names = ("Page", "Log", "Runtime", "Network")
        await asyncio.gather(*(tab.call(f"{name}.enable") for name in names))
        await tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        mode = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await tab.call("Emulation.setEmulatedMedia", features=[mode])
        url = path.resolve().as_uri() + address
        await tab.call("Page.navigate", url=url)
        await tab.until(ready)
        yield tab
        if not alone:
            return
        assert tab.log == []
        asked = [u for u in tab.requests if not u.startswith("data:image/png;base64,")]
        assert set(asked) <= {url, url.partition("#")[0]}, "a report asks for nothing but itself"
