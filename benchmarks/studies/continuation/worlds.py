"""Real pages for training. A page stays loaded between episodes of the same task."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.miniwob import MiniWobEnvironment
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation


class Pages:
    """Pages of one browser. An episode gets a page that shows its task already, if there is one."""

    def __init__(self, environments: Sequence[MiniWobEnvironment]) -> None:
        """The number of concurrent episodes must not exceed the number of environments."""
        self._idle = list(environments)

    def environment(self) -> PinnedPage:
        """An environment for one episode at a time."""
        return PinnedPage(self)

    def take(self, task: str) -> MiniWobEnvironment:
        """An idle page, preferably one that shows the task.

        Raises:
            EnvironmentFault: none is idle.
        """
        if not self._idle:
            raise EnvironmentFault("every page is in use")
        chosen = min(self._idle, key=lambda e: (e.task != task, e.task is not None))
        self._idle.remove(chosen)
        return chosen

    def put_back(self, environment: MiniWobEnvironment) -> None:
        """Return a page, which may then be used for another episode."""
        self._idle.append(environment)


class PinnedPage:
    """An environment that takes a page of :class:`Pages` for each episode."""

    name = "miniwob++ (real pages)"

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._page: MiniWobEnvironment | None = None

    @property
    def tasks(self) -> Sequence[str]:
        from swarm_ui.environments.miniwob import all_html_tasks

        return all_html_tasks()

    async def reset(self, *, task: str, seed: int) -> Observation:
        await self.close()
        self._page = self._pages.take(task)
        return await self._page.reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        if self._page is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        step = await self._page.step(action)
        if step.ended:
            await self.close()
        return step

    async def close(self) -> None:
        """Give the page back; the browser's owner closes it."""
        page, self._page = self._page, None
        if page is not None:
            self._pages.put_back(page)
