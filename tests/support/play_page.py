"""A real browser with one page, for the tests of what is served to people."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shared_browser import SharedBrowser

from swarm_ui.environments.web.browser import Rejected

PATIENCE = 20.0
READY = "document.body && document.body.dataset.turn !== undefined"


class Tab:
    """One page, moved with a real mouse and keyboard."""

    def __init__(self, browser: SharedBrowser, session: str) -> None:
        self._call, self._session = browser.call, session
        self.log: list[str] = []
        browser.listen(session, self._event)

    async def call(self, method: str, **params: object) -> dict[str, Any]:
        return await self._call(method, self._session, **params)

    def _event(self, method: str, params: dict[str, Any]) -> None:
        if method in ("Log.entryAdded", "Runtime.exceptionThrown"):
            self.log.append(json.dumps(params))

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
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    async def type(self, text: str) -> None:
        await self.call("Input.insertText", text=text)

    async def picture(self, path: Path) -> None:
        shot = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def opened(
    browser: SharedBrowser, url: str, width: int = 1280, height: int = 900, ready: str = READY
) -> AsyncIterator[Tab]:
    """Open a page; it is there when ``ready`` holds."""
    async with browser.page() as (session, _):
        tab = Tab(browser, session)
        await asyncio.gather(
            tab.call("Page.enable"), tab.call("Log.enable"), tab.call("Runtime.enable")
        )
        await tab.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        await tab.call("Page.navigate", url=url)
        await tab.until(ready)
        yield tab
