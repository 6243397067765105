"""MiniWoB++ tasks behind the environment contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from swarm_ui.action import Action, ActionType, Direction
from swarm_ui.environment import Step
from swarm_ui.environments.miniwob.input import KEYS
from swarm_ui.environments.miniwob.page import Page, Screen
from swarm_ui.environments.miniwob.tasks import all_html_tasks, fields_of
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past

PAGE_ACTIONS: tuple[ActionType, ...] = (
    "click",
    "input_text",
    "select",
    "scroll",
    "keyboard_enter",
)
"""What an agent is told it can do: a page ends by itself, so there is nothing to declare."""

ALL_PAGE_ACTIONS: tuple[ActionType, ...] = (
    *PAGE_ACTIONS,
    "double_tap",
    "long_press",
    "swipe",
    "wait",
)
"""Everything that a page understands; offered only where it is asked for."""

_TAPS = frozenset({"click", "double_tap", "input_text"})
_OPPOSITE: dict[str, Direction] = {"up": "down", "down": "up", "left": "right", "right": "left"}


class MiniWobEnvironment:
    """One page, one episode at a time. Get them from :class:`MiniWobBrowser`.

    The reward is 1.0 when the page ends the episode with a raw reward above 0, else 0.0; the
    page's clock is off. ``input_text`` replaces what a field holds. The agent need not declare
    success: most pages end by themselves, and ``status`` ends an episode that did not (reward 0).
    Scores are not comparable with published ones: own observation, no clock, raw reward.

    How AndroidWorld's acts are done on a page:

    - an act on an element's ``index`` goes to that element, whatever lies in front of it; with
      ``trusted``, and always with ``x`` and ``y``, the real mouse and keyboard do it.
    - ``swipe`` is a drag with the mouse: from ``index`` (or ``x`` and ``y``) to ``to_index`` (or
      ``to_x`` and ``to_y``), or by the element's own size in a ``direction``. Over text it selects.
      Without a place it is a finger's swipe over the page: it scrolls the other way.
    - ``long_press`` lets the mouse rest on the place: a page has hovering instead.
    - ``keyboard_enter`` with a ``keycode`` presses that key (see ``hand.KEYS``).
    - ``input_text`` with ``clear_text=False`` writes behind what a field holds.
    """

    def __init__(
        self,
        open_page: Callable[[], Awaitable[Page]],
        *,
        budget: int = 10,
        offers: tuple[ActionType, ...] = PAGE_ACTIONS,
        trusted: bool = False,
        screenshots: bool = False,
    ) -> None:
        """
        Args:
            open_page: gives a page, a new one after each fault.
            budget: actions an episode may take.
            offers: kinds of action that observations name; the others are understood all the same.
            trusted: acts on elements are done by mouse and keyboard too.
            screenshots: observations have a ``png``.
        """
        if budget < 1:
            raise ConfigError(f"MiniWobEnvironment: 'budget' must be >= 1, got {budget}")
        strange = [kind for kind in offers if kind not in ALL_PAGE_ACTIONS]
        if strange:
            raise ConfigError(
                f"MiniWobEnvironment: 'offers' has {strange}; a page knows {ALL_PAGE_ACTIONS}"
            )
        self._open_page = open_page
        self._budget = budget
        self._offers = offers
        self._trusted = trusted
        self._screenshots = screenshots
        self._screen: Screen | None = None
        self._page: Page | None = None
        self._now: Observation | None = None
        self._goal = ""
        self._used = 0

    @property
    def name(self) -> str:
        return "miniwob++ (real pages)"

    @property
    def tasks(self) -> Sequence[str]:
        return all_html_tasks()

    @property
    def task(self) -> str | None:
        """Task whose page is loaded; starting it again costs no navigation."""
        return None if self._page is None or self._page.broken else self._page.task

    @property
    def page(self) -> Page | None:
        """The page in use; ``None`` before the first episode."""
        return self._page

    @property
    def raw_reward(self) -> float:
        """The page's own reward of the episode, from -1 to 1 without its clock; 0 until it ends."""
        return 0.0 if self._screen is None else self._screen.raw

    @property
    def fields(self) -> dict[str, str]:
        """What upstream cuts out of the goal of the running episode, such as ``month``.

        Raises:
            EnvironmentFault: no episode was started, or its goal has not the form upstream expects.
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
        screen = await self._page.reset(task, seed)
        self._used = 0
        self._screen, self._goal = screen, screen.goal
        self._now = Observation(
            goal=screen.goal,
            elements=screen.elements,
            actions=self._offers,
            png=await self._page.picture() if self._screenshots else None,
        )
        return self._now

    async def step(self, action: Action) -> Step:
        if self._now is None or self._page is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        before, page = self._now, self._page
        self._now = None  # until the page has answered, there is no episode to go on with
        self._used += 1
        element = before.element(action.index)
        role, label = (element.role, element.label) if element else ("", "")
        history = (*before.history, Past(action=action, role=role, label=label))
        if action.action_type == "status":
            return Step(observation=replace(before, history=history), terminated=True)
        note = _problem(action, before)
        if note:
            return self._outcome(replace(before, history=history), None, note)
        told = _on_page(action)
        self._screen = screen = await page.act(told, by_hand=self._by_hand(told, role))
        png = None
        if self._screenshots and not screen.done:
            png = await page.picture()
        return self._outcome(replace(before, history=history, png=png), screen, note)

    async def close(self) -> None:
        page, self._page, self._now = self._page, None, None
        if page is not None:
            await page.close()

    def _by_hand(self, action: Action, role: str) -> bool:
        kind = action.action_type
        if kind in _TAPS:
            return action.x is not None or (self._trusted and role != "option")
        return kind in ("swipe", "long_press") or action.keycode is not None

    def _outcome(self, after: Observation, screen: Screen | None, note: str) -> Step:
        """What to tell; ``screen`` is ``None`` if the action did not reach the page."""
        done, reward = False, 0.0
        if screen is not None:
            done, note = screen.done, screen.note
            reward = 1.0 if done and screen.raw > 0 else 0.0
            after = replace(after, goal=screen.goal or after.goal, elements=screen.elements)
        truncated = not done and self._used >= self._budget
        if not (done or truncated):
            self._now = after
        return Step(
            observation=after, reward=reward, terminated=done, truncated=truncated, note=note
        )


def _problem(action: Action, now: Observation) -> str:
    """Why the action cannot be done on this screen; empty if it can."""
    if action.action_type not in ALL_PAGE_ACTIONS:
        return f"'{action.action_type}' does nothing on a web page"
    for index in (action.index, action.to_index):
        if index is not None and now.element(index) is None:
            return f"no element {index}; the screen has {len(now.elements)}"
    if action.keycode is not None and action.keycode not in KEYS:
        return f"no key {action.keycode!r}; there are {', '.join(KEYS)}"
    return ""


def _on_page(action: Action) -> Action:
    """The act as the page takes it: a finger's swipe over nothing in particular scrolls."""
    if action.action_type == "swipe" and action.index is None and action.x is None:
        assert action.direction is not None  # Action sees to it
        return Action(action_type="scroll", direction=_OPPOSITE[action.direction])
    return action
