"""One browser page that shows MiniWoB++ tasks."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Coroutine
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.miniwob import input
from swarm_ui.environments.miniwob.cdp import CALL_TIMEOUT, Connection, Reply
from swarm_ui.environments.miniwob.tasks import html_folder, keeps_state
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Element

WIDTH, HEIGHT = 160, 210
"""Pixels of the area MiniWoB++ draws in, and of a screenshot."""
WINDOW = (500, 320)
"""Pixels of the window around it: dialogs are placed by it, and would not fit a smaller one."""
SETTLE_LIMIT = 0.7
"""Seconds an act may go on moving things before the screen is read all the same."""
COLLECT_EVERY = 100
"""Episodes after which a page throws away what it no longer needs: left alone, a browser lets
hundreds of megabytes of old documents lie until the memory of the machine is short."""
FRAME = 0.016
"""Seconds between two frames of a page that moves."""

_CLIP = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """What ``page_screen.js`` reports after each call."""

    goal: str
    elements: tuple[Element, ...]
    done: bool
    raw: float
    """Reward without the page's time discount; 0 until ``done``."""
    note: str
    fields: dict[str, str] | None = None
    """Parts of the goal, on the few pages that tell them."""
    busy: bool = False
    """Something still moves."""


class Aim(msgspec.Struct, frozen=True, kw_only=True):
    """Where the mouse goes, or why it cannot."""

    note: str
    at: tuple[float, float] = (0, 0)
    to: tuple[float, float] | None = None


class Page:
    """A page in its own browser context. After a fault it is broken: open another one.

    ``frames``: the browser draws a frame only when it is told to, and then one at a time, whatever
    the page. Nothing is drawn for nobody, which is half of a page's cost. ``None``: it draws by
    itself.
    """

    def __init__(
        self, connection: Connection, context: str, session: str, frames: asyncio.Lock | None
    ) -> None:
        self._connection = connection
        self._context = context
        self._session = session
        self._frames = frames
        self._loaded: asyncio.Future[None] | None = None
        self._functions = ""
        self._broken = False
        self._touched = False
        self._episodes = 0
        self.task: str | None = None
        """Task whose page is loaded."""
        connection.listen(session, self._event)

    @classmethod
    async def open(cls, connection: Connection, frames: asyncio.Lock | None = None) -> Page:
        context = (await connection.call("Target.createBrowserContext"))["browserContextId"]
        target = await connection.call(
            "Target.createTarget",
            url="about:blank",
            browserContextId=context,
            width=WINDOW[0],
            height=WINDOW[1],
            enableBeginFrameControl=frames is not None,
        )
        attached = await connection.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = cls(connection, context, attached["sessionId"], frames)
        await asyncio.gather(
            page.call("Page.enable"),
            page.call("Inspector.enable"),
            page.call("Emulation.setFocusEmulationEnabled", enabled=True),
            page.call(  # a browser with a window of its own gives the page less than it was asked
                "Emulation.setDeviceMetricsOverride",
                width=WINDOW[0],
                height=WINDOW[1],
                deviceScaleFactor=1,
                mobile=False,
            ),
            page.call("Page.addScriptToEvaluateOnNewDocument", source=_script()),
        )
        return page

    @property
    def broken(self) -> bool:
        return self._broken or self._connection.lost

    async def reset(self, task: str, seed: int) -> Screen:
        """Show ``task`` and start the episode that ``seed`` draws."""
        self._episodes += 1
        if self._episodes % COLLECT_EVERY == 0:
            await self.call("HeapProfiler.collectGarbage")
        if self.task != task or task in keeps_state():
            await self._navigate(task)
        touched, self._touched = self._touched, False
        if touched:  # the mouse still rests where the last episode left it
            await input.leave(self)
        return await self._settled(await self._screen("reset", seed, touched))

    async def act(self, action: Action, *, by_hand: bool = False) -> Screen:
        """Do one act with the element numbers of the last screen.

        Args:
            action: what to do.
            by_hand: with the page's mouse and keyboard; else by reference, inside the page.
        """
        request = _request(action)
        if not by_hand:
            return await self._settled(await self._screen("act", request))
        aim = Aim(note="")
        if action.action_type != "keyboard_enter":
            aim = msgspec.json.decode(await self._value("aim", request), type=Aim)
        if not aim.note:
            self._touched = True
            await input.perform(self, action, aim.at, aim.to)
            await self.frame()
        return await self._settled(await self._screen("look", aim.note))

    async def frame(self) -> None:
        """Have one frame drawn; a browser that draws by itself needs no telling."""
        if self._frames is not None:
            await self._draw(self._frames)

    async def _draw(self, frames: asyncio.Lock, **params: object) -> Reply:
        """One frame. Two at once end the browser, so one that was begun is waited for even where
        whoever asked for it has gone."""

        async def draw() -> Reply:
            async with frames:
                return await self.call("HeadlessExperimental.beginFrame", **params)

        drawing = asyncio.create_task(draw())
        drawing.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(drawing)

    async def drawn(self, waiting: Coroutine[Any, Any, Reply]) -> None:
        """Wait for a call that is answered with a frame.

        One that is left to wait stalls the browser for seconds, so frames are drawn until it is
        answered: the first may come before the page has heard of the call.
        """
        answer = asyncio.create_task(waiting)
        try:
            await asyncio.sleep(0)  # the call goes out first
            while self._frames is not None and not answer.done():
                await self.frame()
                await asyncio.sleep(0)
            await answer
        finally:
            answer.cancel()

    async def picture(self) -> bytes:
        """The screen as a PNG file of 160 × 210 pixels."""
        if self._frames is None:
            reply = await self.call("Page.captureScreenshot", format="png", clip=_CLIP)
            data = reply.get("data")
        else:
            reply = await self._draw(self._frames, screenshot={"format": "png"})
            data = reply.get("screenshotData")
        if not data:
            raise self._fault(f"the page of {self.task!r} gave no picture")
        png = base64.b64decode(data)
        return png if self._frames is None else _cropped(png)

    async def call(self, method: str, **params: object) -> Reply:
        """Send one DevTools command to this page; a failure breaks the page."""
        if self.broken:
            raise EnvironmentFault(f"{method}: the page is gone")
        try:
            return await self._connection.call(method, self._session, **params)
        except EnvironmentFault:
            self._broken = True
            raise

    async def close(self) -> None:
        """Give the page back to the browser; quiet if it is gone already."""
        self._broken = True
        self._connection.forget(self._session, "the page was closed")
        if not self._connection.lost:
            await asyncio.wait(
                [
                    self._connection.post(
                        "Target.disposeBrowserContext", browserContextId=self._context
                    )
                ]
            )

    async def _navigate(self, task: str) -> None:
        self.task = None
        self._loaded = asyncio.get_running_loop().create_future()
        reply = await self.call("Page.navigate", url=(html_folder() / f"{task}.html").as_uri())
        if "errorText" in reply:
            raise self._fault(f"cannot open the page of {task!r}: {reply['errorText']}")
        try:
            await asyncio.wait_for(self._loaded, CALL_TIMEOUT)
        except TimeoutError as error:
            raise self._fault(f"{task!r} did not load in {CALL_TIMEOUT:.0f} s") from error
        reply = await self.call("Runtime.evaluate", expression="swarmUi")
        self._functions = reply["result"].get("objectId", "")
        self.task = task

    async def _settled(self, screen: Screen) -> Screen:
        """The screen once nothing moves any more."""
        if not screen.busy:
            return screen
        clock = asyncio.get_running_loop().time
        deadline = clock() + SETTLE_LIMIT
        while clock() < deadline:
            await asyncio.gather(self.frame(), asyncio.sleep(FRAME))
            if not await self._value("busy"):
                break
        return await self._screen("look", screen.note)

    async def _screen(self, function: str, *arguments: object) -> Screen:
        try:
            return msgspec.json.decode(await self._value(function, *arguments), type=Screen)
        except (TypeError, msgspec.DecodeError) as error:
            raise self._fault(f"the page of {self.task!r} sent no screen: {error}") from error

    async def _value(self, function: str, *arguments: object) -> Any:
        """What a function of ``page_acts.js`` returns."""
        # Always the same text, which the page compiles once; what differs is data.
        code = f"function (told) {{ return this.{function}(...JSON.parse(told)); }}"
        reply = await self.call(
            "Runtime.callFunctionOn",
            functionDeclaration=code,
            objectId=self._functions,
            arguments=[{"value": msgspec.json.encode(arguments).decode()}],
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            what = details.get("exception", {}).get("description", details.get("text"))
            raise self._fault(f"the page of {self.task!r} failed: {what}")
        return reply["result"].get("value")

    def _fault(self, reason: str) -> EnvironmentFault:
        self._broken = True
        return EnvironmentFault(reason)

    def _event(self, method: str, params: Reply) -> None:
        if method == "Page.javascriptDialogOpening":
            self._connection.post("Page.handleJavaScriptDialog", self._session, accept=True)
        elif method == "Page.loadEventFired":
            if self._loaded is not None and not self._loaded.done():
                self._loaded.set_result(None)
        elif method in ("Inspector.targetCrashed", "Inspector.detached"):
            self._broken = True
            reason = f"the page of {self.task!r} crashed"
            if self._loaded is not None and not self._loaded.done():
                self._loaded.set_exception(EnvironmentFault(reason))
            self._connection.forget(self._session, reason)


@cache
def _script() -> str:
    """What a page runs before its own scripts: the three files as one function."""
    folder = resources.files(__package__)
    names = ("page_names.js", "page_screen.js", "page_acts.js")
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in names]
    return "\n".join(["(() => {", '"use strict";', *parts, "})();"])


def _cropped(png: bytes) -> bytes:
    """The area of the task; such a browser has no picture of a part of its window."""
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        picture.crop((0, 0, WIDTH, HEIGHT)).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _request(action: Action) -> dict[str, object]:
    return {
        "type": action.action_type,
        "index": action.index,
        "x": action.x,
        "y": action.y,
        "text": action.text,
        "direction": action.direction,
        "clear_text": action.clear_text,
        "to_index": action.to_index,
        "to_x": action.to_x,
        "to_y": action.to_y,
    }
