"""MiniWoB++ tasks behind the environment contract: one browser, many pages, one environment on
each."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

from swarm_ui.action import Action, ActionType, Direction
from swarm_ui.environments.base import Done, Episodic, missing
from swarm_ui.environments.miniwob.page import Page, Screen
from swarm_ui.environments.miniwob.tasks import all_html_tasks
from swarm_ui.environments.web.acting import unknown_key
from swarm_ui.environments.web.browser import Chromium
from swarm_ui.observation import Element, Observation

PAGE_ACTIONS: tuple[ActionType, ...] = (
    "click", "input_text", "select", "scroll", "keyboard_enter",
)  # fmt: skip
"""The actions that observations offer. Pages end by themselves, so ``status`` is not offered."""
_UNDERSTOOD = frozenset({*PAGE_ACTIONS, "double_tap", "long_press", "swipe", "wait", "status"})

_TAPS = frozenset({"click", "double_tap", "input_text"})
_OPPOSITE: dict[str, Direction] = {"up": "down", "down": "up", "left": "right", "right": "left"}


class MiniWobEnvironment(Episodic):
    """Episodes on one page, one at a time. :class:`MiniWobBrowser` makes these objects.

    The reward is 1.0 when the page ends the episode with a raw reward above 0, else 0.0; ``status``
    ends it with 0. The page's clock, which limits upstream's time and discounts its reward, is off.
    Scores are not comparable with published ones: observation, clock and reward differ.

    AndroidWorld's actions on a page:

    - an action on an ``index`` acts on that element, even if another one covers it. With ``x`` and
      ``y``, mouse and keyboard events are used.
    - ``swipe`` is a drag with the mouse: from ``index`` (or ``x`` and ``y``) to ``to_index`` (or
      ``to_x`` and ``to_y``), or by the element's own size in a ``direction``. It selects text.
      Without a start it is a finger swipe: the page scrolls in the opposite direction.
    - ``long_press`` moves the mouse to the place and leaves it there (hover).
    - ``keyboard_enter`` with a ``keycode`` presses that key (``web.acting.KEYS``), with an
      ``index`` on that element, such as an arrow key on a slider.
    - ``input_text`` sets a field or a slider; with ``clear_text=False`` it appends.
    - ``scroll`` scrolls to the end in a direction, or to the next part of a list that was cut.
    - ``select`` selects the option with that text; ``wait`` waits half a second.
    """

    name = "miniwob++ (real pages)"
    actions = PAGE_ACTIONS

    def __init__(
        self,
        open_page: Callable[[], Awaitable[Page]],
        *,
        budget: int = 10,
        screenshots: bool = False,
    ) -> None:
        """
        Args:
            open_page: opens a page; called again after each fault.
            budget: maximum number of actions in an episode.
            screenshots: add a ``png`` to observations.
        """
        self.tasks, self.budget = all_html_tasks(), budget
        self._open_page = open_page
        self._screenshots = screenshots
        self.page: Page | None = None
        """The page in use; ``None`` before the first episode."""
        self._sound = True
        """Whether the page has done all that it was asked."""
        self._screen: Screen | None = None

    @property
    def raw_reward(self) -> float:
        """The page's own reward, from -1 to 1, without time discount; 0 until the episode ends."""
        return 0.0 if self._screen is None else self._screen.raw

    async def begin(self, task: str, rng: random.Random) -> str:
        self._screen, page = None, self.page
        if page is not None and (not self._sound or page.crashed or page.page.is_closed()):
            await self._close_page()
        if self.page is None:
            self.page = await self._open_page()
        self._sound = False
        self._screen = await self.page.reset(task, self.seed)
        self._sound = True
        return self._screen.goal

    async def screen(self) -> Observation:
        assert self._screen is not None and self.page is not None  # an episode has begun
        shown, png = self._screen, None
        if self._screenshots and not shown.done:
            png = await self.page.picture()
        return Observation(
            goal=shown.goal,
            elements=shown.elements,
            png=png,
            more=shown.more,
            geometry="box" if shown.spatial else "",
        )

    def misfit(self, action: Action, screen: Observation) -> str:
        if action.action_type not in _UNDERSTOOD:
            return f"'{action.action_type}' does nothing on a web page"
        return unknown_key(action) or missing(action, screen)

    async def act(self, action: Action, element: Element | None) -> Done | str:
        assert self.page is not None  # an episode has begun
        if action.action_type == "status":
            return Done(0.0)
        kind = action.action_type
        if kind == "swipe" and action.index is None and action.x is None:  # a finger's
            assert action.direction is not None  # Action validates it
            kind, way = "scroll", _OPPOSITE[action.direction]
            action = Action(action_type=kind, direction=way)
        events = kind in ("swipe", "long_press") or action.keycode is not None
        if kind in _TAPS:
            slides = kind == "input_text" and element and element.class_name == "slider"
            events = action.x is not None and not slides
        self._sound = False
        self._screen = shown = await self.page.act(action, events=events)
        self._sound = True
        return Done(float(shown.raw > 0), shown.note) if shown.done else shown.note

    async def close(self) -> None:
        await super().close()
        await self._close_page()

    async def _close_page(self) -> None:
        page, self.page = self.page, None
        if page is not None:
            await page.close()


class MiniWobBrowser(Chromium):
    """A Chromium with ``pages`` MiniWoB++ environments, which may run at the same time.

    >>> async def play() -> None:
    ...     async with MiniWobBrowser(pages=8) as browser:
    ...         screen = await browser.environments[0].reset(task="click-test", seed=1)

    A page navigates only when an episode of another task starts, so run many episodes of one task
    in a row. A page takes 40 MB. ``options`` are those of :class:`MiniWobEnvironment`.
    """

    def __init__(self, pages: int = 4, **options: Any) -> None:
        super().__init__()
        self.environments: tuple[MiniWobEnvironment, ...] = tuple(
            MiniWobEnvironment(self.open_page, **options) for _ in range(pages)
        )

    async def open_page(self) -> Page:
        """A new page; starts another browser if the last one died.

        Raises:
            EnvironmentFault: the browser cannot be started or gives no page.
        """
        return await Page.open(self)
