"""Upstream's own Selenium environment, asked the same: goal, fields and raw reward must agree."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest
from miniwob_browser import fields, needs_browser
from miniwob_solutions import SOLUTIONS, rounds, solve
from miniwob_upstream import CHROMIUM, DRIVER, Upstream, selenium_environment

from swarm_ui.environments.miniwob import MiniWobBrowser, all_html_tasks

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    needs_browser(),
    pytest.mark.skipif(
        importlib.util.find_spec("selenium") is None or DRIVER is None or CHROMIUM is None,
        reason="upstream's environment needs selenium, a Chromium, and its chromedriver "
        "(Debian: apt-get install chromium chromium-driver)",
    ),
]

NO_SELECTION = frozenset({"highlight-text", "highlight-text-2", "text-editor"})
"""Upstream's mouse selects no text: what our drags earn cannot be earned there."""


@pytest.fixture(scope="module")
def theirs() -> Iterator[Upstream]:
    with selenium_environment() as upstream:
        yield upstream


async def test_goals_and_fields_are_upstreams_on_every_task(theirs: Upstream) -> None:
    different: list[str] = []
    async with MiniWobBrowser(pages=1) as browser:
        ours = browser.environments[0]
        for task in all_html_tasks():
            for seed in range(3):
                expected = theirs.start(task, seed)
                goal = (await ours.reset(task=task, seed=seed)).goal
                found = goal, await fields(ours, goal)
                if found != expected:
                    different.append(f"{task}, {seed}: {found} {expected}")
    assert different == []


async def test_scripted_episodes_earn_what_they_earn_upstream(theirs: Upstream) -> None:
    """The scripts win here; the same acts must bring the same raw reward there."""
    different: list[str] = []
    async with MiniWobBrowser(pages=1, budget=400) as browser:
        ours = browser.environments[0]
        for task, seed in rounds(SOLUTIONS, range(2)):
            if task in NO_SELECTION:
                continue
            player = await solve(ours, task, seed)
            theirs.start(task, seed)
            for action, screen in zip(player.actions, player.screens, strict=True):
                theirs.act(action, screen)
            here = (player.ended, ours.raw_reward)
            if theirs.outcome != here:
                different.append(f"{task}, {seed}: {here} {theirs.outcome} {player.actions}")
    assert different == []
