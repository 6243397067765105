"""Views for Gymnasium and PettingZoo, and environments of Gymnasium: nothing is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.test import parallel_seed_test
from small_world import FIELD, SAVE, Faulty, Notebook

from swarm_ui import Action, ConfigError, Element, EnvironmentFault, Observation
from swarm_ui.environment import Environment
from swarm_ui.environments import GymView, TeamView, from_gymnasium

TYPE = Action(action_type="input_text", index=FIELD, text="milk")
PRESS = Action(action_type="click", index=SAVE)
WRITE: dict[str, Any] = {"tasks": ("write",), "seeds": (3,)}


def act(info: Mapping[str, Any], wanted: Action) -> int:
    """The number of an action."""
    return [action.key for action in info["actions"]].index(wanted.key)


# -- Gymnasium --------------------------------------------------------------------------------


def test_a_task_is_solved_by_numbers() -> None:
    env = GymView(Notebook, tasks=("write",), seeds=(3, 7))
    observation, info = env.reset(seed=1)
    assert "milk" in observation["goal"] and info["task"] == "write" and info["episode"] in (3, 7)
    assert info["action_mask"].sum() == len(info["actions"]) > 5
    _, reward, terminated, _, info = env.step(act(info, TYPE))
    assert (reward, terminated) == (0.0, False)
    assert info["observation"].elements[FIELD].value == "milk"
    _, reward, terminated, truncated, info = env.step(act(info, PRESS))
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["actions"] == () and not info["action_mask"].any()
    with pytest.raises(EnvironmentFault):
        env.step(0)
    env.close()


def test_an_action_that_means_nothing_is_a_lost_step() -> None:
    env = GymView(Notebook, **WRITE)
    env.reset(seed=1)
    *_, info = env.step(999)
    assert "no action 999" in info["note"]
    assert [p.action.action_type for p in info["observation"].history] == ["wait"]
    env.close()


def test_seeds_and_options_choose_the_episode() -> None:
    env = GymView(Notebook)
    drawn = [env.reset(seed=5)[1] for _ in range(2)]
    assert drawn[0]["observation"] == drawn[1]["observation"]
    told = [env.reset()[1] for _ in range(30)]
    assert {info["task"] for info in told} == {"write", "write-again"}
    assert len({info["episode"] for info in told}) > 20
    _, info = env.reset(options={"task": "write", "episode": 42})
    assert (info["task"], info["episode"]) == ("write", 42)
    with pytest.raises(ConfigError):
        env.reset(options={"task": "sing"})
    env.close()


class Unusual(Notebook):
    elements_extra = (
        Element(index=4, role="switch", text="Café “€”\t", checked=False, selected=True),
    )


def test_any_text_fits_and_too_many_actions_are_told() -> None:
    env = GymView(Unusual, **WRITE)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert '4: switch "Caf\\xe9 \\u201c\\u20ac\\u201d\\t" off selected' in observation["screen"]
    env.close()
    env = GymView(Unusual, most_actions=4, **WRITE)
    with pytest.raises(ConfigError, match="most_actions="):
        env.reset(seed=1)
    env.close()


@pytest.mark.parametrize("tell", [False, True])
def test_a_fault_is_never_a_reward(tell: bool) -> None:
    env = GymView(lambda: Faulty(Notebook(), step=1, tell=tell))
    env.reset(seed=1)
    env.step(999)
    with pytest.raises(EnvironmentFault):
        env.step(999)
    env.reset(seed=1)
    env.step(999)
    env.close()


@pytest.mark.parametrize("view", [GymView, TeamView])
def test_nothing_to_draw_from_is_refused_and_closed(view: Any) -> None:
    def broken() -> Environment:
        raise EnvironmentFault("no emulator")

    before = threading.active_count()
    for options in ({"tasks": ()}, {"seeds": ()}):
        with pytest.raises(ConfigError):
            view(Notebook, **options)
    with pytest.raises(EnvironmentFault):
        view(broken)
    assert threading.active_count() == before


def test_views_work_inside_a_running_loop_and_leave_no_thread() -> None:
    before = threading.active_count()

    async def main() -> float:
        env = GymView(Notebook, **WRITE)
        _, info = env.reset(seed=1)
        *_, info = env.step(act(info, TYPE))
        reward = env.step(act(info, PRESS))[1]
        env.close()
        env.close()
        with pytest.raises(EnvironmentFault):
            env.reset(seed=1)
        return float(reward)

    assert asyncio.run(main()) == 1.0
    assert threading.active_count() == before


# -- PettingZoo -------------------------------------------------------------------------------


def test_equal_seeds_give_equal_episodes() -> None:
    parallel_seed_test(lambda: TeamView(Notebook), num_cycles=5)


def test_the_majority_decides_and_all_get_the_reward() -> None:
    env = TeamView(Notebook, agents=3, **WRITE)
    observations, infos = env.reset(seed=1)
    assert set(observations) == set(env.agents) == {"agent_0", "agent_1", "agent_2"}
    mask = observations["agent_0"]["action_mask"]
    assert mask.sum() == len(infos["agent_0"]["actions"])
    one, other = act(infos["agent_0"], PRESS), act(infos["agent_0"], TYPE)
    *_, told = env.step({"agent_1": other, "agent_0": 999})
    assert told["agent_0"]["decision"].key == TYPE.key and told["agent_0"]["lost"]
    _, rewards, ends, _, infos = env.step({"agent_0": one, "agent_1": other, "agent_2": other})
    assert infos["agent_1"]["decision"].key == TYPE.key and not any(ends.values())
    assert infos["agent_0"]["proposals"]["agent_0"].key == PRESS.key
    one = act(infos["agent_0"], PRESS)
    _, rewards, ends, cuts, infos = env.step(dict.fromkeys(env.agents, one))
    assert rewards == dict.fromkeys(env.possible_agents, 1.0)
    assert set(ends.values()) == {True} and set(cuts.values()) == {False}
    assert env.agents == [] and set(infos) == set(env.possible_agents)
    env.close()


def test_without_a_valid_proposal_the_step_is_lost() -> None:
    env = TeamView(Notebook, agents=2, **WRITE)
    env.reset(seed=1)
    for nothing in ({"agent_0": 999, "agent_1": 999}, {}):
        *_, infos = env.step(nothing)
        assert infos["agent_1"]["decision"].action_type == "wait" and infos["agent_1"]["note"]
    env.close()


# -- from Gymnasium ---------------------------------------------------------------------------

WAY = (1, 1, 2, 1, 2, 2)
"""The way over the frozen lake: 1 is down, 2 is right."""


def lake(**options: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("FrozenLake-v1", is_slippery=False, **options)


def button(screen: Observation, label: str) -> Action:
    return Action(
        action_type="click", index=next(e.index for e in screen.elements if e.text == label)
    )


async def test_the_frozen_lake_is_crossed_by_clicks() -> None:
    names = ("left", "down", "right", "up")
    world = from_gymnasium(lambda: lake(render_mode="ansi"), goal="go to G", labels=names)()
    screen = await world.reset(task="FrozenLake-v1", seed=0)
    assert screen.goal == "go to G" and screen.elements[0].text == "[S]FFF"
    assert [e.text for e in screen.elements if e.role == "button"] == list(names)
    for number in WAY:
        step = await world.step(button(screen, names[number]))
        screen = step.observation
    assert step.terminated and step.reward == 1.0
    await world.close()


class Masked(gymnasium.Env[Any, int]):
    """Counts up by one of three numbers, the second of which is not allowed; or takes a text."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.observation_space = spaces.Box(0, 99, (1,), np.int64)
        self.action_space = space

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.sum = 0
        return np.array([0]), {"action_mask": np.array([1, 0, 1], np.int8)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.sum += len(action) if isinstance(action, str) else int(action)
        mask = {"action_mask": np.array([1, 0, 1], np.int8)}
        return np.array([self.sum]), self.sum * 1.0, self.sum > 10, False, mask


async def test_masked_actions_are_not_offered_and_the_score_is_the_callers() -> None:
    space = spaces.Discrete(3, start=4)
    world = from_gymnasium(lambda: Masked(space), score=lambda total: total / 100)()
    screen = await world.reset(task="Masked", seed=0)
    labels = [e.text for e in screen.elements]
    assert labels == ["[0]", "action 0", "action 2"]
    step = await world.step(Action(action_type="click", index=2))
    assert step.observation.elements[0].text == "[6]" and "6" in step.note
    step = await world.step(Action(action_type="click", index=2))
    assert step.terminated and step.reward == pytest.approx(0.18)


async def test_texts_are_typed_and_a_sum_that_is_no_score_is_refused() -> None:
    world = from_gymnasium(lambda: Masked(spaces.Text(99)))()
    await world.reset(task="Masked", seed=0)
    typed = Action(action_type="input_text", index=1, text="more than ten")
    with pytest.raises(ConfigError, match="score="):
        await world.step(typed)


def test_other_actions_are_refused() -> None:
    with pytest.raises(ConfigError):
        from_gymnasium(lambda: Masked(spaces.Box(0, 1, (3,))))()


# -- what they stand on -----------------------------------------------------------------------


def test_the_extra_is_named_where_it_is_missing() -> None:
    for name in ("GymView", "from_gymnasium"):
        code = "import sys; sys.modules['gymnasium'] = None\n"
        code += f"from swarm_ui.environments import {name}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "pip install 'swarm-ui[gym]'" in done.stderr, done.stderr
