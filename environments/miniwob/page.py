"""A browser page that shows MiniWoB++ tasks."""

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
from swarm_ui.environments.miniwob.cdp import CALL_TIMEOUT, Connection, Reply, decoded
from swarm_ui.environments.miniwob.tasks import html_folder, keeps_state
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Element

WIDTH, HEIGHT = 160, 210
"""Pixels of the area that MiniWoB++ draws in, and of a screenshot."""
WINDOW = (500, 320)
"""Size of the window around the page, in pixels. Dialogs would not fit into a smaller window."""
SETTLE_LIMIT = 0.7
"""Seconds to wait for animations after an action before the screen is read."""
COLLECT_EVERY = 100
"""Episodes between two garbage collections. Without them a browser keeps hundreds of megabytes of
old documents until the machine is short of memory."""
FRAME = 0.016
"""Seconds between two frames of an animation."""

_CLIP = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """The screen as ``page_screen.js`` reports it after each call."""

    goal: str
    elements: tuple[Element, ...]
    done: bool
    raw: float
    """Reward without the page's time discount; 0 until ``done``."""
    reward: float
    """Reward with the page's time discount; 0 until ``done``."""
    note: str
    fields: dict[str, str] | None = None
    """Parts of the goal, on the pages that report them."""
    more: tuple[int, int] | None = None
    """Number of elements that are not listed, before and after the listed ones."""
    spatial: bool = False
    """Whether bounds matter: the page has drawings, sliders or draggable elements."""
    busy: bool = False
    """Whether an animation is still running."""


class MouseTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The points of a mouse action; if there are none, ``note`` has the reason."""

    note: str
    at: tuple[float, float] = (0, 0)
    to: tuple[float, float] | None = None


class Page:
    """A page in its own browser context. After a fault it is broken: open another one.

    Args:
        frames: a lock for browsers that draw a frame only on request, one frame at a time for all
            pages; this halves the cost of a page. ``None``: the browser draws by itself.
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
        try:
            return await cls._open_in(context, connection, frames)
        except BaseException:  # re-raised: nobody else knows the context
            connection.post("Target.disposeBrowserContext", browserContextId=context)
            raise

    @classmethod
    async def _open_in(
        cls, context: str, connection: Connection, frames: asyncio.Lock | None
    ) -> Page:
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
            page.call(  # a browser with a window gives the page less space than requested
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

    async def reset(self, task: str, seed: int, *, clock: bool = False) -> Screen:
        """Show ``task`` and start the episode of ``seed``. ``clock``: turn the page's clock on."""
        self._episodes += 1
        if self._episodes % COLLECT_EVERY == 0:
            await self.call("HeapProfiler.collectGarbage")
        if self.task != task or task in keeps_state():
            await self._navigate(task)
        touched, self._touched = self._touched, False
        if touched:  # the mouse is still where the last episode left it
            await input.move_away(self)
        return await self._settled(await self._screen("reset", seed, touched, clock))

    async def act(self, action: Action, *, trusted: bool = False) -> Screen:
        """Do one action. Its indices are those of the last screen.

        Args:
            action: the action.
            trusted: use mouse and keyboard events instead of a script in the page.
        """
        request = msgspec.to_builtins(action)
        if not trusted:
            return await self._settled(await self._screen("act", request))
        target = MouseTarget(note="")
        if action.action_type != "keyboard_enter" or action.index is not None:
            target = msgspec.json.decode(await self._value("locate", request), type=MouseTarget)
        if not target.note:
            self._touched = True
            await input.perform(self, action, target.at, target.to)
            await self.frame()
        return await self._settled(await self._screen("look", target.note))

    async def frame(self) -> None:
        """Draw a frame, where the browser does not draw by itself."""
        if self._frames is not None:
            await self._draw(self._frames)

    async def _draw(self, frames: asyncio.Lock, **params: object) -> Reply:
        """Draw one frame. Two at once would end the browser, so a started frame is finished even if
        the caller is cancelled."""

        async def draw() -> Reply:
            async with frames:
                return await self.call("HeadlessExperimental.beginFrame", **params)

        drawing = asyncio.create_task(draw())
        drawing.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(drawing)

    async def drawn(self, waiting: Coroutine[Any, Any, Reply]) -> None:
        """Wait for a call that the browser answers only when it draws a frame.

        Without a frame the browser would stall for seconds. Frames are drawn until the answer
        comes, because the first frame may be drawn before the page has received the call.
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
            raise self._fault(f"the page of {self.task!r} returned no picture")
        png = base64.b64decode(data)
        return png if self._frames is None else _cropped(png)

    async def call(self, method: str, **params: object) -> Reply:
        """Send a DevTools command to this page; after a failure the page is broken."""
        if self.broken:
            raise EnvironmentFault(f"{method}: the page is gone")
        try:
            return await self._connection.call(method, self._session, **params)
        except EnvironmentFault:
            self._broken = True
            raise

    async def close(self) -> None:
        """Close the page; does nothing if it is gone already."""
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
        """The screen after all animations have ended."""
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
            return decoded(await self._value(function, *arguments), Screen)
        except (TypeError, ValueError) as error:
            raise self._fault(f"the page of {self.task!r} returned no screen: {error}") from error

    async def _value(self, function: str, *arguments: object) -> Any:
        """The result of a function of ``page_acts.js``."""
        # The text is always the same, so that the page compiles it once; the arguments are data.
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
    """The script that runs before a page's own scripts: the three files as one function."""
    folder = resources.files(__package__)
    names = ("page_names.js", "page_screen.js", "page_acts.js")
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in names]
    return "\n".join(["(() => {", '"use strict";', *parts, "})();"])


def _cropped(png: bytes) -> bytes:
    """The area of the task, cut out of a picture of the whole window."""
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as picture:
        picture.crop((0, 0, WIDTH, HEIGHT)).save(out, "PNG", compress_level=1)
    return out.getvalue()
