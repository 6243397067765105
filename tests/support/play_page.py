"""A real browser with one page, for the tests of what is served or written for people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shared_browser import SharedBrowser

from swarm_ui.environments.web.browser import Rejected

PATIENCE = 20.0
READY = "document.body && document.body.dataset.turn !== undefined"
SCENE = "!!document.querySelector('#viewer .scene')"


class Tab:
    """One page, moved with a real mouse and keyboard."""

    def __init__(self, browser: SharedBrowser, session: str, profile: str) -> None:
        self._call, self._session, self.profile = browser.call, session, profile
        self.log: list[str] = []
        self.requests: list[str] = []
        """The addresses of all requests."""
        browser.listen(session, self._event)

    async def call(self, method: str, **params: object) -> dict[str, Any]:
        return await self._call(method, self._session, **params)

    def _event(self, method: str, params: dict[str, Any]) -> None:
        if method in ("Log.entryAdded", "Runtime.exceptionThrown"):
            self.log.append(json.dumps(params))
        if method == "Network.requestWillBeSent":
            self.requests.append(str(params["request"]["url"]))

    async def js(self, expression: str) -> Any:
        reply = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    async def leave(self, expression: str) -> None:
        """Run what opens another page. A page that is gone cannot answer, so it runs afterwards."""
        await self.js(f"void setTimeout(() => {{ {expression} }})")

    async def until(self, expression: str) -> None:
        """Wait until something holds on the page."""
        async with asyncio.timeout(PATIENCE):
            while not await self._holds(expression):
                await asyncio.sleep(0.02)

    async def _holds(self, expression: str) -> bool:
        try:
            return bool(await self.js(expression))
        except Rejected:  # the page is being left for the next one
            return False

    async def click(self, selector: str, text: str = "") -> None:
        """Click with the mouse on what a person sees there."""
        find = (
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            f".find(node => node.checkVisibility() && node.textContent.includes({json.dumps(text)})"
            f" || (node.title || '').includes({json.dumps(text)}) && {json.dumps(text)} !== '')"
        )
        await self.until(f"!!{find}")
        await self.js(f"{find}.scrollIntoView({{block: 'nearest'}})")
        box = await self.js(f"(r => [r.x + r.width / 2, r.y + r.height / 2])"
                            f"({find}.getBoundingClientRect())")  # fmt: skip
        told = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, **told)

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def press(self, key: str) -> None:
        """A key of the keyboard; it has a text if it is one character."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def words(self, selector: str) -> str:
        """What stands there, as a person reads it."""
        return str(await self.js(f"document.querySelector({selector!r})?.innerText ?? ''"))


@asynccontextmanager
async def opened(
    browser: SharedBrowser, url: str, *, width: int = 1280, dark: bool = False, ready: str = READY
) -> AsyncIterator[Tab]:
    """Open a page; it is there when ``ready`` holds."""
    async with browser.page() as (session, profile):
        tab = Tab(browser, session, profile)
        names = ("Page", "Log", "Runtime", "Network")
        await asyncio.gather(*(tab.call(f"{name}.enable") for name in names))
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await tab.call("Emulation.setDeviceMetricsOverride", **size)
        mode = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await tab.call("Emulation.setEmulatedMedia", features=[mode])
        await tab.call("Page.navigate", url=url)
        await tab.until(ready)
        yield tab


@asynccontextmanager
async def opened_report(
    browser: SharedBrowser, path: Path, *, address: str = "", ready: str = SCENE,
    alone: bool = True, **look: Any,
) -> AsyncIterator[Tab]:  # fmt: skip
    """Open a report file; at the end it must have logged nothing and asked for nothing else.

    ``alone=False``: a page of several files, for which that does not hold.
    """
    url = path.resolve().as_uri() + address
    async with opened(browser, url, ready=ready, **look) as tab:
        yield tab
        if alone:
            assert tab.log == []
            asked = [u for u in tab.requests if not u.startswith("data:image/png;base64,")]
            assert set(asked) <= {url, url.partition("#")[0]}, "a report asks for itself alone"
