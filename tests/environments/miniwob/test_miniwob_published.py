"""Results that can be set beside published ones: the right split, the clock, upstream's reward."""

from __future__ import annotations

import msgspec
import pytest
from miniwob_browser import click, needs_browser, script

from swarm_ui.action import Action
from swarm_ui.environments.miniwob import MiniWobBrowser, blind_tasks
from swarm_ui.environments.miniwob.benchmark import MiniWob, upstream_measures
from swarm_ui.environments.miniwob.tasks import split_of
from swarm_ui.environments.wrappers import Recorder

pytestmark = [pytest.mark.browser, needs_browser()]
DONE = Action(action_type="status", goal_status="complete")


@pytest.mark.parametrize(
    ("tasks", "split"),
    [
        ((), "reference"),
        (("click-test", "enter-text"), "reference"),
        (("use-slider",), "blind"),
        (("use-slider", "find-greatest"), "blind"),
        (("use-slider", "click-test"), "all"),
    ],
)
def test_results_of_chosen_tasks_are_labelled_with_their_split(
    tasks: tuple[str, ...], split: str
) -> None:
    assert MiniWob(tasks=tasks).test_split() == split
    assert split_of(blind_tasks()) == "blind"


def test_a_task_outside_the_split_is_refused() -> None:
    env = MiniWob(tasks=("use-slider",))
    assert list(env.mistakes(("reference",))) == [
        ("tasks", "'use-slider' is not in the split 'reference'; leave the split out")
    ]
    assert not list(env.mistakes(("blind", "all")))


async def test_the_clock_is_the_pages_own_and_the_reward_upstreams() -> None:
    async with MiniWobBrowser(pages=1, published=True, budget=2) as browser:
        env = browser.environments[0]
        assert env.name == "miniwob++ (real pages, page clock)"
        for _ in range(2):  # the second episode finds the page's time again
            screen = await env.reset(task="click-test", seed=1)
            assert await script(env, "core.EPISODE_MAX_TIME") == 10_000
            step = await env.step(click(screen, "Click Me!"))
            assert step.reward == env.raw_reward == 1.0
            assert 0.0 < env.upstream_reward < 1.0
            assert step.note == f"upstream's reward {env.upstream_reward:.4f}"
        await env.reset(task="click-test", seed=1)
        await script(env, "core.endEpisode(-1, false, 'timed out') || 0")
        late = await env.step(click(screen, "Click Me!"))
        assert (late.terminated, late.reward, env.upstream_reward) == (True, 0.0, -1.0)
        await env.reset(task="click-test", seed=1)
        assert (await env.step(DONE)).note == "upstream's reward -1.0000"
        await env.reset(task="click-test", seed=1)
        for _ in range(2):
            step = await env.step(Action(action_type="click", index=77))
        assert step.truncated and step.note.startswith("upstream's reward -1.0000; no element 77")


async def test_without_the_option_there_is_no_clock_and_no_note() -> None:
    async with MiniWobBrowser(pages=1) as browser:
        env = browser.environments[0]
        screen = await env.reset(task="click-test", seed=1)
        assert await script(env, "core.EPISODE_MAX_TIME") == 1e8
        step = await env.step(click(screen, "Click Me!"))
        assert (step.reward, step.note, env.name) == (1.0, "", "miniwob++ (real pages)")


async def test_the_measures_are_means_of_upstreams_reward() -> None:
    async with MiniWobBrowser(pages=1, published=True) as browser:
        world = Recorder(browser.environments[0], None)
        episodes, rewards = [], []
        for label in ("ONE", "TWO"):  # "ONE" is right
            screen = await world.reset(task="click-test-2", seed=1)
            await world.step(click(screen, label))
            assert world.last is not None
            episodes.append(world.last)
            rewards.append(browser.environments[0].upstream_reward)
    mean, above = upstream_measures(episodes)
    assert mean.value == pytest.approx(sum(rewards) / 2, abs=1e-4) and rewards[1] == -1.0
    assert above.value == 0.5
    cut = msgspec.structs.replace(episodes[0].steps[0], note="")  # by a limit of the rollout
    (mean, _) = upstream_measures([msgspec.structs.replace(episodes[0], steps=(cut,))])
    assert mean.value == -1.0
