"""When the browser breaks: a fault, never a reward of 0, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from miniwob_browser import click, needs_browser, script
from miniwob_child import family
from playwright.async_api import Error
from shared_browser import process_of

from swarm_ui.action import Action
from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment
from swarm_ui.environments.web.browser import BROWSER_VARIABLE, find_browser
from swarm_ui.errors import ConfigError, EnvironmentFault

pytestmark = [pytest.mark.browser, needs_browser()]

WAIT = Action(action_type="wait")
HANG = "(document.body.addEventListener('click', () => { for (;;); }, true), 1)"


async def crash(env: MiniWobEnvironment) -> None:
    assert env.page is not None
    with contextlib.suppress(Error, TimeoutError):
        await env.page.page.goto("chrome://crash", timeout=2000)


async def test_a_page_that_crashes_during_a_step_is_a_fault_of_its_episode() -> None:
    async with MiniWobBrowser(pages=2) as browser:
        env, other = browser.environments
        await env.reset(task="click-test", seed=1)
        screen = await other.reset(task="click-test", seed=1)
        step = asyncio.create_task(env.step(WAIT))
        await asyncio.sleep(0.02)
        await crash(env)
        with pytest.raises(EnvironmentFault, match="crashed"):
            await step
        assert (await other.step(click(screen, "Click Me!"))).reward == 1.0
        screen = await env.reset(task="click-test", seed=1)
        assert (await env.step(click(screen, "Click Me!"))).reward == 1.0


@pytest.mark.slow  # tests of other sites kill a browser too
async def test_a_killed_browser_is_a_fault_and_the_next_reset_starts_another() -> None:
    async with MiniWobBrowser(pages=2) as browser, MiniWobBrowser(pages=1) as another:
        env, other = browser.environments
        pages = env, other, another.environments[0]
        screen, *_ = [await e.reset(task="click-test", seed=1) for e in pages]
        step = asyncio.create_task(env.step(WAIT))
        await asyncio.sleep(0.02)
        first = await process_of(browser)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(EnvironmentFault):
            await step
        with pytest.raises(EnvironmentFault):
            await other.step(WAIT)
        assert (await pages[2].step(click(screen, "Click Me!"))).reward == 1.0
        screens = await asyncio.gather(*(e.reset(task="click-test", seed=1) for e in (env, other)))
        assert await process_of(browser) != first
        assert screens[0] == screens[1] == screen
        assert (await other.step(click(screen, "Click Me!"))).reward == 1.0


@pytest.mark.parametrize(
    ("how", "told"),
    [("(core.getUtterance = () => { throw new Error('torn') }, 1)", "torn"), (HANG, "no answer")],
    ids=["broken", "hanging"],
)
async def test_a_broken_page_is_a_fault(
    how: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with MiniWobBrowser(pages=1) as browser:
        env = browser.environments[0]
        screen = await env.reset(task="click-test", seed=1)
        await script(env, how)
        monkeypatch.setattr("swarm_ui.environments.web.browser.CALL_TIMEOUT", 2.0)
        with pytest.raises(EnvironmentFault, match=told):
            await env.step(click(screen, "Click Me!"))
        monkeypatch.undo()
        assert (await env.reset(task="click-test", seed=1)) == screen


async def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RuntimeError, match="mine"):
        async with MiniWobBrowser(pages=1) as browser:
            pid = await process_of(browser)
            raise RuntimeError("mine")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A temporary folder. Chromium's socket in it needs a path of less than 108 characters."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        yield Path(folder)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's /proc")
@pytest.mark.parametrize("words", [(), ("hang",)], ids=["idle", "hanging page"])
def test_kill_9_of_ours_leaves_no_process(words: tuple[str, ...], short_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("miniwob_child.py")), *words],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(short_path)},
    )  # fmt: skip
    assert child.stdout is not None
    try:
        pids: list[int] = json.loads(child.stdout.readline())
        # Chromium replaces renderers by itself, so some of the first processes may have ended.
        pids += family(child.pid)
        assert len(set(filter(alive, pids))) > 3
    finally:
        child.kill()
        child.communicate()
    deadline = time.monotonic() + 15
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if alive(pid)] == []
    left = [path.name for path in short_path.iterdir()]
    assert [name for name in left if not name.startswith("swarm-ui-downloads-")] == []


def test_the_variable_chooses_the_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "chrome"
    mine.write_text("")
    mine.chmod(0o755)
    monkeypatch.setenv(BROWSER_VARIABLE, str(mine))
    assert find_browser() == mine
    monkeypatch.setenv(BROWSER_VARIABLE, "/no/such/chrome")
    with pytest.raises(ConfigError, match="/no/such/chrome"):
        find_browser()


async def test_without_a_browser_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(BROWSER_VARIABLE, raising=False)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert find_browser() is None
    with pytest.raises(ConfigError, match="apt-get install chromium"):
        async with MiniWobBrowser(pages=1):
            pass
