"""A browser page that shows MiniWoB++ tasks."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.miniwob.tasks import html_folder, keeps_state
from swarm_ui.environments.web.acting import perform
from swarm_ui.environments.web.browser import Chromium, DevTools, answered, whole
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Element

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Dialog
    from playwright.async_api import Page as BrowserPage

WIDTH, HEIGHT = 160, 210
"""Pixels of the area that MiniWoB++ draws in, and of a screenshot."""
WINDOW = (500, 320)
"""Size of the window around the page, in pixels. Dialogs would not fit into a smaller window."""
COLLECT_EVERY = 100
"""Episodes between two garbage collections. Without them a browser keeps hundreds of megabytes of
old documents until the machine is short of memory."""

T = TypeVar("T")


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """The screen as ``page_screen.js`` reports it after each call."""

    goal: str
    elements: tuple[Element, ...]
    done: bool
    raw: float
    """Reward without the page's time discount; 0 until ``done``."""
    note: str
    more: tuple[int, int] | None = None
    """Number of elements that are not listed, before and after the listed ones."""
    spatial: bool = False
    """Whether bounds matter: the page has drawings, sliders or draggable elements."""


class MouseTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The points of a mouse action; if there are none, ``note`` has the reason."""

    note: str
    at: tuple[float, float] = (0, 0)
    to: tuple[float, float] | None = None


class Page(DevTools):
    """A page with a profile of its own. After a fault it is broken: open another one."""

    def __init__(self, page: BrowserPage, session: CDPSession) -> None:
        super().__init__(page, session)
        self.task: str | None = None
        """Task whose page is loaded."""
        self._failed = False
        self._functions = ""
        self._touched = False
        self._episodes = 0
        page.on("dialog", self._accept)

    @classmethod
    async def open(cls, chromium: Chromium) -> Self:
        context = await chromium.context(WINDOW)
        try:
            await answered(context.add_init_script(_script()))
            return await cls.of(await answered(context.new_page()))
        except BaseException:  # re-raised: nobody else knows the context
            await answered(context.close())
            raise

    @property
    def broken(self) -> bool:
        return self._failed or self.crashed or self.page.is_closed()

    async def done(self, waiting: Awaitable[T]) -> T:
        """The result of any call of Playwright; after a failure the page is broken."""
        try:
            return await super().done(waiting)
        except EnvironmentFault as error:
            self._failed = True
            raise EnvironmentFault(f"the page of {self.task!r}: {error}") from error

    async def reset(self, task: str, seed: int) -> Screen:
        """Show ``task`` and start the episode of ``seed``."""
        self._episodes += 1
        if self._episodes % COLLECT_EVERY == 0:
            await self.done(self.page.request_gc())
        if self.task != task or task in keeps_state():
            await self._navigate(task)
        touched, self._touched = self._touched, False
        if touched:  # the mouse is still where the last episode left it
            await self.done(self.page.mouse.move(-1, -1))
        return await self._screen("reset", seed, touched)

    async def act(self, action: Action, *, events: bool) -> Screen:
        """Do one action. Its indices are those of the last screen.

        Args:
            action: the action.
            events: use mouse and keyboard events instead of a script in the page.
        """
        request = msgspec.to_builtins(action)
        if not events:
            return await self._screen("act", request)
        target = MouseTarget(note="")
        if action.action_type != "keyboard_enter" or action.index is not None:
            target = msgspec.json.decode(await self._value("locate", request), type=MouseTarget)
        if not target.note:
            self._touched = True
            await self.done(perform(self, action, target.at, target.to or (0, 0)))
        return await self._screen("look", target.note)

    async def picture(self) -> bytes:
        """The screen as a PNG file of 160 × 210 pixels."""
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT}
        return await self.done(self.page.screenshot(clip=clip))  # type: ignore[arg-type]

    async def close(self) -> None:
        """Close the page; does nothing if it is gone already."""
        with contextlib.suppress(EnvironmentFault):
            await answered(self.page.context.close())

    async def _navigate(self, task: str) -> None:
        self.task = None
        await self.done(self.page.goto((html_folder() / f"{task}.html").as_uri()))
        reply = await self.call("Runtime.evaluate", expression="swarmUi")
        self._functions = reply["result"].get("objectId", "")
        self.task = task

    async def _screen(self, function: str, *arguments: object) -> Screen:
        told = await self._value(function, *arguments)
        try:
            if "\\ud" in told:  # maybe half a character, which is no text
                told = whole(json.dumps(json.loads(told), ensure_ascii=False))
            return msgspec.json.decode(told, type=Screen)
        except (TypeError, ValueError) as error:
            self._failed = True
            raise EnvironmentFault(
                f"the page of {self.task!r} returned no screen: {error}"
            ) from error

    async def _value(self, function: str, *arguments: object) -> Any:
        """The result of a function of ``page_acts.js``."""
        # The text is always the same, so that the page compiles it once; the arguments are data.
        call = f"function (told) {{ return this.{function}(...JSON.parse(told)); }}"
        return await self.function(self._functions, call, msgspec.json.encode(arguments).decode())

    async def _accept(self, dialog: Dialog) -> None:
        with contextlib.suppress(EnvironmentFault):  # the page is gone
            await answered(dialog.accept())


@cache
def _script() -> str:
    """The script that runs before a page's own scripts: the three files as one function."""
    folder = resources.files(__package__)
    names = ("page_names.js", "page_screen.js", "page_acts.js")
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in names]
    return "\n".join(["(() => {", '"use strict";', *parts, "})();"])
