"""One browser page that shows MiniWoB++ tasks."""

from __future__ import annotations

import asyncio
import json
from importlib import resources

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.miniwob.cdp import CALL_TIMEOUT, Connection, Reply
from swarm_ui.environments.miniwob.tasks import html_folder, keeps_state
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Element

WIDTH, HEIGHT = 160, 210
"""Pixels of the area MiniWoB++ draws in."""


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """What ``page.js`` reports after each call."""

    goal: str
    elements: tuple[Element, ...]
    done: bool
    raw: float
    """Reward without the page's time discount; 0 until ``done``."""
    note: str


class Page:
    """A page in its own browser context. After a fault it is broken: open another one."""

    def __init__(self, connection: Connection, context: str, session: str) -> None:
        self._connection = connection
        self._context = context
        self._session = session
        self._loaded: asyncio.Future[None] | None = None
        self._broken = False
        self.task: str | None = None
        """Task whose page is loaded."""
        connection.listen(session, self._event)

    @classmethod
    async def open(cls, connection: Connection) -> Page:
        context = (await connection.call("Target.createBrowserContext"))["browserContextId"]
        target = await connection.call(
            "Target.createTarget",
            url="about:blank",
            browserContextId=context,
            width=WIDTH,
            height=HEIGHT,
        )
        attached = await connection.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = cls(connection, context, attached["sessionId"])
        script = resources.files(__package__).joinpath("page.js").read_text(encoding="utf-8")
        await asyncio.gather(
            page.call("Page.enable"),
            page.call("Inspector.enable"),
            page.call("Emulation.setFocusEmulationEnabled", enabled=True),
            page.call("Page.addScriptToEvaluateOnNewDocument", source=script),
        )
        return page

    @property
    def broken(self) -> bool:
        return self._broken or self._connection.lost

    async def reset(self, task: str, seed: int) -> Screen:
        """Show ``task`` and start the episode that ``seed`` draws."""
        if self.task != task or task in keeps_state():
            await self._navigate(task)
        return await self._evaluate(f"swarmUi.reset({json.dumps(seed)})")

    async def act(self, action: Action) -> Screen:
        """Do one act with the element numbers of the last screen."""
        request = {
            "type": action.action_type,
            "index": action.index,
            "x": action.x,
            "y": action.y,
            "text": action.text,
            "direction": action.direction,
        }
        return await self._evaluate(f"swarmUi.act({json.dumps(request)})")

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
        self.task = task

    async def _evaluate(self, expression: str) -> Screen:
        reply = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in reply:
            details = reply["exceptionDetails"]
            what = details.get("exception", {}).get("description", details.get("text"))
            raise self._fault(f"the page of {self.task!r} failed: {what}")
        try:
            return msgspec.json.decode(reply["result"]["value"], type=Screen)
        except (KeyError, msgspec.DecodeError) as error:
            raise self._fault(f"the page of {self.task!r} sent no screen: {error}") from error

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
