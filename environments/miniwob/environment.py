"""MiniWoB++ tasks behind the environment contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypedDict, get_args

from msgspec.structs import replace

from swarm_ui.action import Action, ActionType, Direction
from swarm_ui.environment import Step
from swarm_ui.environments.marks import marked
from swarm_ui.environments.miniwob.page import Page, Screen
from swarm_ui.environments.miniwob.tasks import all_html_tasks, fields_of
from swarm_ui.environments.web import input
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Geometry, Observation

PAGE_ACTIONS: tuple[ActionType, ...] = (
    "click",
    "input_text",
    "select",
    "scroll",
    "keyboard_enter",
)
"""The actions that observations offer. Pages end by themselves, so ``status`` is not offered."""

ALL_PAGE_ACTIONS: tuple[ActionType, ...] = (
    *PAGE_ACTIONS,
    "double_tap",
    "long_press",
    "swipe",
    "wait",
)
"""All actions that a page understands."""

_TAPS = frozenset({"click", "double_tap", "input_text"})
_OPPOSITE: dict[str, Direction] = {"up": "down", "down": "up", "left": "right", "right": "left"}


class EnvironmentOptions(TypedDict, total=False):
    """The options of :class:`MiniWobEnvironment`."""

    budget: int
    offers: tuple[ActionType, ...]
    trusted: bool
    screenshots: bool
    marks: bool
    geometry: Literal["auto"] | Geometry
    published: bool


UPSTREAM = "upstream's reward"
"""Begins the note of the last step of an episode with ``published``; the number follows."""


class MiniWobEnvironment:
    """Episodes on one page, one at a time. :class:`MiniWobBrowser` makes these objects.

    The reward is 1.0 when the page ends the episode with a raw reward above 0, else 0.0. The
    *page's clock*, which sets upstream's time limit and discounts its reward, is off.
    ``input_text`` replaces the text of a field. The agent need not declare success: most pages end
    by themselves, and ``status`` ends an episode with reward 0. Scores are not comparable with
    published ones: the observation differs from upstream's, there is no clock, and the reward is
    the raw one. With ``published`` the page's clock is on, and the reward of upstream's environment
    is reported, too.

    AndroidWorld's actions on a page:

    - an action on an ``index`` acts on that element, even if another one covers it. With
      ``trusted``, and always with ``x`` and ``y``, mouse and keyboard events are used.
    - ``swipe`` is a drag with the mouse: from ``index`` (or ``x`` and ``y``) to ``to_index`` (or
      ``to_x`` and ``to_y``), or by the element's own size in a ``direction``. It selects text.
      Without a start it is a finger swipe: the page scrolls in the opposite direction.
    - ``long_press`` moves the mouse to the place and leaves it there.
    - ``keyboard_enter`` with a ``keycode`` presses that key (see ``input.KEYS``).
    - ``input_text`` with ``clear_text=False`` appends to the text of a field.
    """

    def __init__(
        self,
        open_page: Callable[[], Awaitable[Page]],
        *,
        budget: int = 10,
        offers: tuple[ActionType, ...] = PAGE_ACTIONS,
        trusted: bool = False,
        screenshots: bool = False,
        marks: bool = False,
        geometry: Literal["auto"] | Geometry = "auto",
        published: bool = False,
    ) -> None:
        """
        Args:
            open_page: opens a page; called again after each fault.
            budget: maximum number of actions in an episode.
            offers: the actions that observations list; the others are accepted too.
            trusted: use mouse and keyboard events for actions on elements too.
            screenshots: add a ``png`` to observations.
            marks: draw numbered boxes on the ``png``, with the indices of the elements.
            geometry: how texts show the bounds of elements (``Observation.geometry``); ``"auto"``:
                all four edges if names do not distinguish the elements, as on pages with drawings,
                sliders or draggable elements.
            published: turn the page's clock on, and note upstream's reward at the end.
        """
        if budget < 1:
            raise ConfigError(f"MiniWobEnvironment: 'budget' must be >= 1, got {budget}")
        strange = [kind for kind in offers if kind not in ALL_PAGE_ACTIONS]
        if strange:
            raise ConfigError(
                f"MiniWobEnvironment: 'offers' has {strange}, expected some of {ALL_PAGE_ACTIONS}"
            )
        known = ("auto", *get_args(Geometry))
        if geometry not in known:
            raise ConfigError(
                f"MiniWobEnvironment: 'geometry' is {geometry!r}, expected one of {known}"
            )
        self._open_page = open_page
        self._budget = budget
        self._offers = offers
        self._trusted = trusted
        self._screenshots = screenshots or marks
        self._marks = marks
        self._geometry = geometry
        self._published = published
        self._screen: Screen | None = None
        self._page: Page | None = None
        self._now: Observation | None = None
        self._goal = ""
        self._used = 0

    @property
    def name(self) -> str:
        return "miniwob++ (real pages, page clock)" if self._published else "miniwob++ (real pages)"

    @property
    def tasks(self) -> Sequence[str]:
        return all_html_tasks()

    @property
    def task(self) -> str | None:
        """The task whose page is loaded. Another episode of this task needs no navigation."""
        return None if self._page is None or self._page.broken else self._page.task

    @property
    def page(self) -> Page | None:
        """The page in use; ``None`` before the first episode."""
        return self._page

    @property
    def raw_reward(self) -> float:
        """The page's own reward, from -1 to 1, without time discount; 0 until the episode ends."""
        return 0.0 if self._screen is None else self._screen.raw

    @property
    def upstream_reward(self) -> float:
        """The reward of upstream's environment: the raw reward, discounted by the page's clock. It
        is -1 for an episode that has not ended, as after upstream's time limit."""
        screen = self._screen
        return screen.reward if screen is not None and screen.done else -1.0

    @property
    def fields(self) -> dict[str, str]:
        """The fields that upstream extracts from the goal of the episode, such as ``month``.

        Raises:
            EnvironmentFault: no episode was started, or its goal does not have the expected form.
        """
        if self._screen is None or self.task is None:
            raise EnvironmentFault("no episode was started: call reset(task=..., seed=...) first")
        told = self._screen.fields
        return fields_of(self.task, self._goal) if told is None else dict(told)

    async def reset(self, *, task: str, seed: int) -> Observation:
        if task not in all_html_tasks():
            raise ConfigError(f"MiniWoB++ has no task {task!r}; see 'tasks' for the names")
        self._now = self._screen = None
        if self._page is not None and self._page.broken:
            await self._page.close()
            self._page = None
        if self._page is None:
            self._page = await self._open_page()
        screen = await self._page.reset(task, seed, clock=self._published)
        self._used = 0
        self._screen, self._goal = screen, screen.goal
        start = Observation(goal="", elements=(), actions=self._offers)
        self._now = await self._observed(start, screen, self._page)
        return self._now

    async def step(self, action: Action) -> Step:
        if self._now is None or self._page is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        before, page = self._now, self._page
        self._now = None  # there is no running episode until the page has answered
        self._used += 1
        element = before.element(action.index)
        past = before.past(action)
        history = (*before.history, past)
        if action.action_type == "status":
            return self._outcome(replace(before, history=history), None, "", over=True)
        note = _problem(action, before)
        if note:
            return self._outcome(replace(before, history=history), None, note)
        told = _on_page(action)
        slides = action.action_type == "input_text" and element and element.class_name == "slider"
        trusted = not slides and self._with_events(told, past.role)
        self._screen = screen = await page.act(told, trusted=trusted)
        after = await self._observed(replace(before, history=history), screen, page)
        return self._outcome(after, screen, screen.note)

    async def close(self) -> None:
        page, self._page, self._now = self._page, None, None
        if page is not None:
            await page.close()

    def _with_events(self, action: Action, role: str) -> bool:
        kind = action.action_type
        if kind in _TAPS:
            return action.x is not None or (self._trusted and role != "option")
        return kind in ("swipe", "long_press") or action.keycode is not None

    async def _observed(self, before: Observation, screen: Screen, page: Page) -> Observation:
        """The observation of a screen. ``before`` is the observation before the action."""
        png = None
        if self._screenshots and not screen.done:
            png = await page.picture()
            if self._marks:
                png = marked(png, screen.elements)
        auto: Geometry = "box" if screen.spatial else ""
        return replace(
            before,
            goal=screen.goal or before.goal,
            elements=screen.elements,
            png=png,
            more=screen.more,
            geometry=auto if self._geometry == "auto" else self._geometry,
        )

    def _outcome(
        self, after: Observation, screen: Screen | None, note: str, *, over: bool = False
    ) -> Step:
        """The step; ``screen`` is ``None`` if the action was not sent to the page."""
        done = over or (screen is not None and screen.done)
        reward = 1.0 if screen is not None and done and screen.raw > 0 else 0.0
        truncated = not done and self._used >= self._budget
        if not (done or truncated):
            self._now = after
        elif self._published:
            note = f"{UPSTREAM} {self.upstream_reward:.4f}" + (f"; {note}" if note else "")
        return Step(
            observation=after, reward=reward, terminated=done, truncated=truncated, note=note
        )


def _problem(action: Action, now: Observation) -> str:
    """The reason why the action cannot be done on this screen, or an empty string."""
    if action.action_type not in ALL_PAGE_ACTIONS:
        return f"'{action.action_type}' does nothing on a web page"
    return input.problem(action, now)


def _on_page(action: Action) -> Action:
    """The action for the page; a swipe without a start becomes a scroll."""
    if action.action_type == "swipe" and action.index is None and action.x is None:
        assert action.direction is not None  # Action validates it
        return Action(action_type="scroll", direction=_OPPOSITE[action.direction])
    return action
