"""Every kind of act does on a real page what it does for a person: scripted episodes that win."""

from __future__ import annotations

import shutil

import pytest
from miniwob_browser import needs_browser
from miniwob_solutions import SOLUTIONS, rounds, unsolved

from swarm_ui.environments.miniwob import MiniWobBrowser
from swarm_ui.environments.web import BROWSER_VARIABLE

pytestmark = [pytest.mark.browser, needs_browser()]

WITH_WINDOWS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.mark.soak
async def test_many_seeds_of_all_scripted_tasks_are_solved() -> None:
    async with MiniWobBrowser(pages=6, budget=400) as browser:
        assert await unsolved(browser, rounds(SOLUTIONS, range(10))) == []


@pytest.mark.slow
async def test_a_browser_that_draws_by_itself_solves_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [path for name in WITH_WINDOWS if (path := shutil.which(name)) is not None]
    if not found:
        pytest.skip(f"no browser with windows: none of {', '.join(WITH_WINDOWS)} is on the PATH")
    monkeypatch.setenv(BROWSER_VARIABLE, found[0])
    async with MiniWobBrowser(pages=4, budget=400) as browser:
        assert await unsolved(browser, rounds(SOLUTIONS, range(2))) == []
