"""One browser, many pages, one environment on each."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from swarm_ui.environments.miniwob.environment import EnvironmentOptions, MiniWobEnvironment
from swarm_ui.environments.miniwob.page import Page
from swarm_ui.environments.web.browser import Chromium
from swarm_ui.errors import ConfigError


class MiniWobBrowser:
    """A Chromium with ``pages`` MiniWoB++ environments, which may run at the same time.

    >>> async def play() -> None:
    ...     async with MiniWobBrowser(pages=8) as browser:
    ...         screen = await browser.environments[0].reset(task="click-test", seed=1)

    A page navigates only when an episode of another task starts, so run many episodes of one task
    in a row. A page takes 40 MB.
    """

    def __init__(
        self,
        pages: int = 4,
        *,
        binary: Path | None = None,
        **options: Unpack[EnvironmentOptions],
    ) -> None:
        """
        Args:
            pages: the number of pages.
            binary: the browser; default: :func:`~swarm_ui.environments.web.find_browser`.
            options: the options of :class:`MiniWobEnvironment`.
        """
        if pages < 1:
            raise ConfigError(f"MiniWobBrowser: 'pages' must be >= 1, got {pages}")
        self._chromium = Chromium(binary)
        self._open = False
        self.environments: tuple[MiniWobEnvironment, ...] = tuple(
            MiniWobEnvironment(self.open_page, **options) for _ in range(pages)
        )

    async def __aenter__(self) -> MiniWobBrowser:
        await self._chromium.start()
        self._open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """Process number of the running browser."""
        return self._chromium.pid

    async def open_page(self) -> Page:
        """A new page; starts another browser if the last one died.

        Raises:
            ConfigError: used outside ``async with``.
            EnvironmentFault: the browser cannot be started or gives no page.
        """
        if not self._open:
            raise ConfigError("MiniWobBrowser is closed: use it inside 'async with'")
        return await Page.open(self._chromium)

    async def close(self) -> None:
        """End every page and the browser; safe to call twice."""
        self._open = False
        await self._chromium.close()
