"""The two ways to talk to a browser: pipes, and a web socket where there are none."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from miniwob_browser import click, needs_browser, script

from swarm_ui.environments.miniwob import MiniWobBrowser
from swarm_ui.environments.miniwob.browser import PIPES, Browser
from swarm_ui.environments.miniwob.cdp_transport import Pipe, Socket
from swarm_ui.errors import EnvironmentFault

pytestmark = [pytest.mark.browser, needs_browser()]

needs_pipes = pytest.mark.skipif(not PIPES, reason="no pipes for a child on this system")
WIRES = [
    pytest.param("pipe", marks=needs_pipes),
    pytest.param("socket", marks=pytest.mark.slow if PIPES else ()),
]


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    """The kind that browsers started by the test have."""
    monkeypatch.setattr("swarm_ui.environments.miniwob.browser.PIPES", request.param == "pipe")
    return Pipe if request.param == "pipe" else Socket


async def test_pages_are_played_over_either(wire: type) -> None:
    async with MiniWobBrowser(pages=3) as browser:
        screens = await asyncio.gather(
            *(env.reset(task="click-test", seed=1) for env in browser.environments)
        )
        env = browser.environments[0]
        assert env.page is not None
        assert isinstance(env.page._connection._transport, wire)
        assert (await env.step(click(screens[0], "Click Me!"))).reward == 1.0


@pytest.mark.parametrize("length", [1, 65_535, 65_536, 300_000])
async def test_messages_of_any_length_arrive_whole(wire: type, length: int) -> None:
    async with MiniWobBrowser(pages=1) as browser:
        env = browser.environments[0]
        await env.reset(task="click-test", seed=1)
        text = ("é\\ \u2028'" * length)[:length]
        assert await asyncio.gather(*(script(env, json.dumps(text + end)) for end in "abc")) == [
            text + end for end in "abc"
        ]


async def test_a_killed_browser_is_told_over_either(wire: type) -> None:
    async with MiniWobBrowser(pages=1) as browser:
        env = browser.environments[0]
        screen = await env.reset(task="click-test", seed=1)
        assert env.page is not None
        assert browser.pid is not None
        never = env.page.call(
            "Runtime.evaluate", expression="new Promise(() => {})", awaitPromise=True
        )
        waits = asyncio.create_task(never)
        await asyncio.sleep(0.1)
        os.kill(browser.pid, signal.SIGKILL)
        with pytest.raises(EnvironmentFault, match="browser is gone"):
            await waits
        assert await env.reset(task="click-test", seed=1) == screen


async def test_no_file_stays_open(wire: type) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("reads Linux's /proc")

    async def launch() -> int:
        browser = await Browser.launch()
        await browser.close()
        return len(list(folder.iterdir()))

    before = await launch()
    for _ in range(3):
        assert await launch() == before


@needs_pipes
async def test_a_browser_ends_when_its_pipe_is_closed() -> None:
    """So it does when we are gone, however we went."""
    browser = await Browser.launch()
    try:
        await browser.connection.close()
        await asyncio.wait_for(asyncio.to_thread(browser._process.wait), 15)
    finally:
        await browser.close()
