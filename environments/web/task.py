"""Tasks on web sites, and their success checks."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.environments.web.hosts import web_url
from swarm_ui.environments.web.session import Session
from swarm_ui.errors import EnvironmentFault


class Visit:
    """The state at the end of an episode, for the reward function."""

    def __init__(self, session: Session, answer: str | None) -> None:
        self._session = session
        self.answer = answer
        """The text of the last ``answer`` action; ``None`` if there was none."""

    @property
    def url(self) -> str:
        """The address of the active tab."""
        return self._session.front.url

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of all tabs."""
        return tuple(tab.url for tab in self._session.tabs)

    @property
    def downloads(self) -> Mapping[str, Path]:
        """The downloaded files by name; they are removed when the episode has been judged."""
        return dict(self._session.downloads)

    async def evaluate(self, expression: str) -> Any:
        """The JSON value of a JavaScript expression, which is evaluated in the document of the
        active tab.

        It runs in an isolated world, in which the page's scripts can change nothing.

        Raises:
            ScriptError: the expression fails.
        """
        return await self._session.front.evaluate(expression)

    async def open(self, url: str) -> None:
        """Open a page in the active tab, to check the result of the agent's actions.

        Raises:
            ConfigError: it is not the address of a web page.
            EnvironmentFault: its host is not allowed, it cannot be opened, or its server fails.
        """
        url = web_url(url)
        if not self._session.allowed.allows(url):
            raise EnvironmentFault(f"{url} is not allowed: {self._session.allowed}")
        await self._session.open(url)

    async def text(self) -> str:
        """The visible text of the page in the active tab, without its frames."""
        return str(await self.evaluate("document.body ? document.body.innerText : ''"))


Reward = Callable[[Visit], bool | float | Awaitable[bool | float]]
"""Judges an episode: ``True`` or 1.0 if its task is solved, else ``False`` or 0.0."""


class WebTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task on a web site."""

    url: str
    """The page that is open when the episode starts."""
    goal: str
    """The goal as the agent reads it."""
    reward: Reward
    """Called once, when the agent declares that the task is complete."""
    infeasible: bool = False
    """The task cannot be done; it is solved by declaring it infeasible."""
    storage_state: Path | None = None
    """A file with the cookies and the local storage of a user who is logged in, as Playwright's
    ``context.storage_state(path=...)`` saves them."""
    prepare: Callable[[int], Awaitable[None] | None] | None = None
    """Called with the seed before each episode, for example to reset the site's data base."""


async def result(task: WebTask, function: Callable[[Any], Any], given: object) -> Any:
    """The result of a function of a task. Raises ``EnvironmentFault`` if it fails, since that says
    nothing about the agents."""
    try:
        value = function(given)
        return await value if inspect.isawaitable(value) else value
    except Exception as error:
        raise EnvironmentFault(f"a function of the task {task.goal!r} failed: {error}") from error
