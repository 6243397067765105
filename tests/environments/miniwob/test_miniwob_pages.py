"""Real MiniWoB++ pages in a real Chromium: what an agent sees, and what its acts do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from miniwob_browser import click, needs_browser, quoted, script

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments.miniwob import (
    REFERENCE_TASKS,
    MiniWobBrowser,
    MiniWobEnvironment,
)

pytestmark = [pytest.mark.browser, needs_browser(), pytest.mark.asyncio(loop_scope="module")]

SEEDS = range(3)
NASTY = 'it\'s "quoted" </script><b>`${1+1}`\\n \\u0041 \u2028 é'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[MiniWobBrowser]:
    async with MiniWobBrowser(pages=8) as opened:
        yield opened


@pytest.fixture
def env(browser: MiniWobBrowser) -> MiniWobEnvironment:
    return browser.environments[0]


@pytest.mark.slow
async def test_equal_seeds_give_equal_screens_on_any_page_and_after_any_episode(
    browser: MiniWobBrowser,
) -> None:
    one, two, *_ = browser.environments
    for task in REFERENCE_TASKS[::6]:
        first = await one.reset(task=task, seed=3)
        other = await one.reset(task=task, seed=4)
        assert first == await one.reset(task=task, seed=3) == await two.reset(task=task, seed=3)
        assert first.elements
        assert other.goal
    assert isinstance(one, Environment)


async def test_typing_fills_the_field_and_shows_in_the_next_observation(
    env: MiniWobEnvironment,
) -> None:
    for seed in SEEDS:
        screen = await env.reset(task="enter-text", seed=seed)
        field = next(e for e in screen.elements if e.role == "field")
        assert (field.value, field.editable) == ("", True)
        text = quoted(screen.goal)
        typed = await env.step(Action(action_type="input_text", index=field.index, text=text))
        assert typed.observation.elements[field.index].value == text
        assert [past.role for past in typed.observation.history] == ["field"]
        assert (await env.step(click(typed.observation, "Submit"))).reward == 1.0


async def test_typed_text_is_data_never_code(env: MiniWobEnvironment) -> None:
    screen = await env.reset(task="enter-text", seed=1)
    field = next(e for e in screen.elements if e.role == "field")
    step = await env.step(Action(action_type="input_text", index=field.index, text=NASTY))
    assert step.observation.elements[field.index].value == NASTY


@pytest.mark.parametrize("kind", ["select", "click"])
async def test_list_options_can_be_chosen(env: MiniWobEnvironment, kind: str) -> None:
    for seed in SEEDS:
        screen = await env.reset(task="choose-list", seed=seed)
        name = screen.goal.removeprefix("Select ").removesuffix(" from the list and click Submit.")
        option = next(e for e in screen.elements if e.role == "option" and e.label == name)
        choose = Action(action_type=kind, index=option.index, text=name)  # type: ignore[arg-type]
        step = await env.step(choose)
        assert step.observation.elements[option.index].checked is True
        assert (await env.step(click(step.observation, "Submit"))).reward == 1.0


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
