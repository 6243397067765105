"""Real MiniWoB++ pages in a real Chromium: what an agent sees, and what its acts do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from miniwob_browser import click, needs_browser, script
from miniwob_player import Player

from swarm_ui.action import Action, Direction
from swarm_ui.environments.miniwob import MiniWobBrowser, MiniWobEnvironment
from swarm_ui.observation import Observation, render

pytestmark = [pytest.mark.browser, needs_browser(), pytest.mark.asyncio(loop_scope="module")]

SEEDS = range(3)
NASTY = 'it\'s "quoted" </script><b>`${1+1}`\\n \\u0041 \u2028 é'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[MiniWobBrowser]:
    async with MiniWobBrowser(pages=2, budget=60) as opened:
        yield opened


@pytest.fixture
def env(browser: MiniWobBrowser) -> MiniWobEnvironment:
    return browser.environments[0]


async def test_typed_text_is_data_never_code(env: MiniWobEnvironment) -> None:
    screen = await env.reset(task="enter-text", seed=1)
    field = next(e for e in screen.elements if e.role == "field")
    step = await env.step(Action(action_type="input_text", index=field.index, text=NASTY))
    assert step.observation.elements[field.index].value == NASTY


async def test_select_finds_the_option_by_its_text(env: MiniWobEnvironment) -> None:
    screen = await env.reset(task="choose-list", seed=2)
    last = [e for e in screen.elements if e.role == "option"][-1]
    step = await env.step(Action(action_type="select", index=0, text=last.text.upper()))
    assert step.observation.elements[last.index].checked is True
    step = await env.step(Action(action_type="select", index=0, text="no such name"))
    assert step.note == "no such option"


async def test_scrolling_a_text_area_unlocks_the_form(env: MiniWobEnvironment) -> None:
    screen = await env.reset(task="sign-agreement", seed=1)
    area = next(e for e in screen.elements if e.role == "area")
    assert area.scrollable
    assert any(not e.enabled for e in screen.elements if e.role == "button")
    scroll = Action(action_type="scroll", index=area.index, direction="down")
    step = await env.step(scroll)
    assert all(e.enabled for e in step.observation.elements if e.role in ("field", "button"))
    assert (await env.step(scroll)).note == "nothing to scroll that way"


async def test_dialogs_of_the_browser_do_not_stop_the_page(env: MiniWobEnvironment) -> None:
    screen = await env.reset(task="click-test-2", seed=1)
    hook = "document.body.addEventListener('click', () => alert('hello'), true)"
    await script(env, f"({hook}, 1)")
    step = await asyncio.wait_for(env.step(click(screen, "ONE")), 10)
    assert step.reward == 1.0
    await env.close()  # the next test gets a page without the hook


async def test_the_clock_of_the_page_is_off(env: MiniWobEnvironment) -> None:
    screen = await env.reset(task="click-test", seed=1)
    assert await script(env, "core.EPISODE_MAX_TIME") == 1e8
    await script(env, "(core.ept0 = 0, 1)")  # the episode began in 1970
    step = await env.step(click(screen, "Click Me!"))
    assert await script(env, "[WOB_REWARD_GLOBAL, WOB_RAW_REWARD_GLOBAL]") == [0, 1]
    assert step.reward == 1.0


# -- what is listed ---------------------------------------------------------------------------


# -- long lists -------------------------------------------------------------------------------


async def pages(env: MiniWobEnvironment, screen: Observation, way: Direction) -> list[Observation]:
    """The screens from here to the end, or to the beginning, of a long list."""
    found = [screen]
    while (found[-1].more or (0, 0))[way == "down"]:
        step = await env.step(Action(action_type="scroll", direction=way))
        assert step.note == "" and not step.ended
        found.append(step.observation)
        assert len(found) < 40
    return found


def names(screens: list[Observation]) -> set[str]:
    return {e.label for screen in screens for e in screen.elements}


async def test_a_list_that_is_cut_says_so_and_goes_on(env: MiniWobEnvironment) -> None:
    player = Player(env, await env.reset(task="book-flight", seed=1))
    field = next(e for e in player.screen.elements if e.editable)
    screen = await player.fill(field, "a")
    options = await script(env, "[...document.querySelectorAll('.ui-menu-item')].length")
    assert isinstance(options, int) and options > 500
    assert len(screen.elements) == 70 and screen.more is not None
    assert screen.more[0] == 0 and screen.more[1] > 400
    assert render(screen).endswith(f"({screen.more[1]} more elements follow: scroll down)")
    down = await pages(env, screen, "down")
    suggested = await script(
        env, "[...document.querySelectorAll('.ui-menu-item')].map((one) => one.textContent.trim())"
    )
    assert isinstance(suggested, list) and set(suggested) <= names(down)
    assert "(" in render(down[-1]).splitlines()[0] and "scroll up" in render(down[-1])
    up = await pages(env, down[-1], "up")
    assert up[-1].more is not None and up[-1].more[0] == 0
    assert names(up) == names(down)
    last = down[-1].elements[-1]
    assert last.bounds is not None


# -- what an act starts -----------------------------------------------------------------------


async def test_the_screen_is_read_after_what_the_act_started(env: MiniWobEnvironment) -> None:
    """Timers of timers, and changes of the selection; not the page's own clockwork."""
    screen = await env.reset(task="click-button", seed=1)
    await script(
        env,
        """(() => {
          const told = document.createElement("p"), button = document.createElement("button");
          button.textContent = "start", told.textContent = "idle";
          document.querySelector("#area").append(button, told);
          button.addEventListener("click", () => setTimeout(
            () => setTimeout(() => { told.textContent = "done"; }, 120), 90));
          (function clockwork() { setTimeout(clockwork, 50); })();
          return 1;
        })()""",
    )
    screen = (await env.step(Action(action_type="scroll", direction="up"))).observation
    assert any(e.label == "idle" for e in screen.elements)
    for _ in range(2):
        screen = (await env.step(click(screen, "start"))).observation
        assert any(e.label == "done" for e in screen.elements)
        await script(env, "document.querySelector('#area > p').textContent = 'idle'")
