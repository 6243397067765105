"""Browsers end with our process, use constant memory, and end only their own episodes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from miniwob_browser import click, needs_browser
from miniwob_child import family, memory
from shared_browser import process_of

from swarm_ui.action import Action
from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment, all_html_tasks
from swarm_ui.errors import EnvironmentFault

pytestmark = [
    pytest.mark.browser,
    needs_browser(),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's /proc"),
]


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def soon(condition: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def start_child(*words: str, **environment: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A program with a browser, and the browser's processes."""
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("miniwob_child.py")), *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert child.stdout is not None
    pids: list[int] = json.loads(child.stdout.readline())
    return child, pids


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A temporary folder. Chromium's socket in it needs a path of less than 108 characters."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        yield Path(folder)


@pytest.mark.parametrize("words", [(), ("hang",)], ids=["idle", "hanging page"])
def test_kill_9_of_ours_leaves_no_process(words: tuple[str, ...], short_path: Path) -> None:
    child, pids = start_child(*words, TMPDIR=str(short_path))
    try:
        # Chromium replaces renderers by itself, so some of the first processes may have ended.
        pids += family(child.pid)
        assert len(set(filter(alive, pids))) > 3
    finally:
        child.kill()
        child.communicate()
    assert soon(lambda: not any(map(alive, pids))), [pid for pid in pids if alive(pid)]
    left = [path.name for path in short_path.iterdir()]
    assert [name for name in left if not name.startswith("swarm-ui-downloads-")] == []


async def test_a_dead_browser_takes_only_its_own_episodes() -> None:
    async with MiniWobBrowser(pages=1) as one, MiniWobBrowser(pages=1) as other:
        mine, theirs = one.environments[0], other.environments[0]
        screen = await mine.reset(task="click-test", seed=1)
        await theirs.reset(task="click-test", seed=1)
        pid = await process_of(other)
        os.kill(pid, signal.SIGKILL)
        assert soon(lambda: not alive(pid))
        with pytest.raises(EnvironmentFault):
            await theirs.step(click(screen, "Click Me!"))
        assert (await mine.step(click(screen, "Click Me!"))).reward == 1.0
        assert await theirs.reset(task="click-test", seed=1) == screen


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_ten_thousand_episodes_leak_nothing() -> None:
    pages = 8
    numbers = count()
    async with MiniWobBrowser(pages=pages) as browser:
        tasks = all_html_tasks()

        async def play(env: MiniWobEnvironment, until: int, each: int) -> None:
            """``each`` episodes of a task in a row, two acts each."""
            while (number := next(numbers)) < until:
                screen = await env.reset(task=tasks[number // each % len(tasks)], seed=number)
                for act in range(2):
                    if not screen.elements:
                        break
                    index = (number + act) % len(screen.elements)
                    step = await env.step(Action(action_type="click", index=index))
                    screen = step.observation
                    if step.ended:
                        break

        async def sizes(until: int) -> tuple[float, float, dict[str, int]]:
            """Megabytes of the browser and of ours, and what is counted, after so many episodes."""
            await asyncio.gather(*(play(env, until, 20) for env in browser.environments))
            for env in browser.environments:  # what waits to be thrown away is no leak
                assert env.page is not None
                await env.page.page.request_gc()
            pid = await process_of(browser)
            assert env.page is not None
            running = env.page.page.context.browser
            assert running is not None
            counts = {
                "pages": sum(len(context.pages) for context in running.contexts),
                "contexts": len(running.contexts),
                "processes": len(family(pid)),
                "files": len(list(Path("/proc/self/fd").iterdir())),
                "files of the browser": len(list(Path(f"/proc/{pid}/fd").iterdir())),
                "tasks": len(asyncio.all_tasks()),
            }
            return memory(family(pid)), memory([os.getpid()]), counts

        start = await sizes(2500)  # every task has been shown once
        pid = await process_of(browser)
        middle = await sizes(6000)
        end = await sizes(10_000)
        print(f"browser and ours, MB: {start} after 2,500, {middle} after 6,000, at the end {end}")
        assert await process_of(browser) == pid
        assert end[0] < start[0] * 1.25 + 50
        assert end[1] < start[1] + 20
        for what, number in end[2].items():
            assert number <= start[2][what] + (10 if "browser" in what else 1), (what, start, end)
