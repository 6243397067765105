"""MiniWoB++ tasks behind the environment contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec.structs import replace

from swarm_ui.action import Action, ActionType
from swarm_ui.environment import Step
from swarm_ui.environments.miniwob.page import Page, Screen
from swarm_ui.environments.miniwob.tasks import all_html_tasks
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

_ON_PAGE = frozenset(
    {"click", "double_tap", "input_text", "select", "scroll", "keyboard_enter", "wait"}
)


class MiniWobEnvironment:
    """One page, one episode at a time. Get them from :class:`MiniWobBrowser`.

    The reward is 1.0 when the page ends the episode with a raw reward above 0, else 0.0; the
    page's clock is off. ``input_text`` replaces what a field holds. The agent need not declare
    success: most pages end by themselves, and ``status`` ends an episode that did not (reward 0).
    Scores are not comparable with published ones: own observation, no clock, raw reward.
    """

    def __init__(self, open_page: Callable[[], Awaitable[Page]], *, budget: int = 10) -> None:
        if budget < 1:
            raise ConfigError(f"MiniWobEnvironment: 'budget' must be >= 1, got {budget}")
        self._open_page = open_page
        self._budget = budget
        self._page: Page | None = None
        self._now: Observation | None = None
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

    async def reset(self, *, task: str, seed: int) -> Observation:
        if task not in all_html_tasks():
            raise ConfigError(f"MiniWoB++ has no task {task!r}; see 'tasks' for the names")
        self._now = None
        if self._page is not None and self._page.broken:
            await self._page.close()
            self._page = None
        if self._page is None:
            self._page = await self._open_page()
        screen = await self._page.reset(task, seed)
        self._used = 0
        self._now = Observation(goal=screen.goal, elements=screen.elements, actions=PAGE_ACTIONS)
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
        screen = None if note else await page.act(action)
        return self._outcome(replace(before, history=history), screen, note)

    async def close(self) -> None:
        page, self._page, self._now = self._page, None, None
        if page is not None:
            await page.close()

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
    if action.action_type not in _ON_PAGE:
        return f"'{action.action_type}' does nothing on a web page"
    if action.index is not None and now.element(action.index) is None:
        return f"no element {action.index}; the screen has {len(now.elements)}"
    return ""
