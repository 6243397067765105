"""A browser page that shows MiniWoB++ tasks."""

from __future__ import annotations

import contextlib
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Self

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.miniwob.tasks import html_folder, keeps_state
from swarm_ui.environments.web.acting import perform
from swarm_ui.environments.web.browser import Chromium, Tab, answered, whole
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Element

if TYPE_CHECKING:
    from playwright.async_api import Dialog
    from playwright.async_api import Page as BrowserPage

WIDTH, HEIGHT = 160, 210
"""Pixels of the area that MiniWoB++ draws in, and of a screenshot."""
WINDOW = (500, 320)
"""Size of the window around the page, in pixels. Dialogs would not fit into a smaller window."""
COLLECT_EVERY = 100
"""Episodes between two garbage collections. Without them a browser keeps hundreds of megabytes of
old documents until the machine is short of memory."""


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


class Page(Tab):
    """A page with a profile of its own. After a fault it may be broken: open another one."""

    def __init__(self, page: BrowserPage) -> None:
        super().__init__(page)
        self.task: str | None = None
        """Task whose page is loaded."""
        self._functions = ""
        self._touched = False
        self._episodes = 0
        page.on("dialog", self._accept)

    @classmethod
    async def open(cls, chromium: Chromium) -> Self:
        context = await chromium.context(WINDOW)
        try:
            await answered(context.add_init_script(_script()))
            return cls(await answered(context.new_page()))
        except BaseException:  # re-raised: nobody else knows the context
            await answered(context.close())
            raise

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
        place: Any = {"note": ""}
        if action.action_type != "keyboard_enter" or action.index is not None:
            place = json.loads(await self._value("locate", request))
        if not place["note"]:
            self._touched = True
            at, to = place.get("at", (0, 0)), place.get("to") or (0, 0)
            await self.done(perform(self, action, at, to))
        return await self._screen("look", place["note"])

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
            raise EnvironmentFault(
                f"{self.task!r}: the page returned no screen: {error}"
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
