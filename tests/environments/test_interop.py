"""Gymnasium and PettingZoo views: their own checkers, and that nothing is lost on the way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from small_world import DELETE, FIELD, SAVE, Bare, Notebook

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments.action_choices import choices, phrases
from swarm_ui.environments.interop.blocking import BlockingEnvironment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.wrappers import FaultInjector
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Element, Observation

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")

import numpy as np  # noqa: E402  # the two above bring it
from gymnasium.utils.env_checker import check_env  # noqa: E402
from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: E402

from swarm_ui.environments.interop.gymnasium_view import GymView, Sizes, register  # noqa: E402
from swarm_ui.environments.interop.pettingzoo_view import TeamView, majority  # noqa: E402
from swarm_ui.environments.interop.spaces import COLUMNS, ROLES, drawn  # noqa: E402


def act(info: Mapping[str, Any], wanted: Action) -> int:
    """The number of an action."""
    keys = [action.key for action in info["actions"]]
    return keys.index(wanted.key)


TYPE = Action(action_type="input_text", index=FIELD, text="milk")
PRESS = Action(action_type="click", index=SAVE)


# -- their own checkers -----------------------------------------------------------------------


@pytest.mark.parametrize("actions", ["index", "json"])
@pytest.mark.parametrize("world", [Notebook, Bare, PhoneEnvironment], ids=lambda w: w.__name__)
def test_gymnasium_finds_nothing_wrong(world: Any, actions: Any) -> None:
    id = f"swarm_ui/{world.__name__}-{actions}-v0"
    register(id, world, actions=actions)
    try:
        env = gymnasium.make(id)
        check_env(env.unwrapped)  # its warnings are errors here
        env.close()
    finally:
        del gymnasium.registry[id]


def test_gymnasium_finds_nothing_wrong_with_pictures() -> None:
    env = GymView(
        lambda: PhoneEnvironment(screenshots=True),
        sizes=Sizes(screenshot=(54, 120)),
        tasks=("notes-create",),
    )
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=1)
    assert observation["screenshot"].shape == (120, 54, 3) and observation["screenshot"].std() > 5
    env.close()


@pytest.mark.parametrize("actions", ["index", "json"])
def test_pettingzoo_finds_nothing_wrong(actions: Any) -> None:
    env = TeamView(Notebook, actions=actions)
    parallel_api_test(env, num_cycles=30)
    env.close()
    parallel_seed_test(lambda: TeamView(Notebook, actions=actions), num_cycles=5)


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


def test_a_task_is_solved_by_json() -> None:
    env = GymView(Notebook, tasks=("write",), seeds=(3,), actions="json")
    env.reset(seed=1)
    env.step(f"I type it: {TYPE.json()}")
    assert env.step(PRESS.json())[1] == 1.0
    env.close()


def test_an_action_that_means_nothing_is_a_lost_step() -> None:
    env = GymView(Notebook, tasks=("write",), seeds=(3,))
    env.reset(seed=1)
    *_, info = env.step(999)
    assert info["note"].startswith("no action 999: the screen offers ")
    assert [p.action.action_type for p in info["observation"].history] == ["wait"]
    env.close()
    env = GymView(Notebook, tasks=("write",), seeds=(3,), actions="json")
    env.reset(seed=1)
    assert env.step("hm")[4]["note"] == "no JSON object in the reply"
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
    with pytest.raises(ConfigError, match="no task 'sing'"):
        env.reset(options={"task": "sing"})
    env.close()


def test_elements_are_rows() -> None:
    env = GymView(Notebook, tasks=("write",), seeds=(3,), sizes=Sizes(elements=6))
    observation, info = env.reset(seed=1)
    rows = observation["elements"]
    assert rows.shape == (6, len(COLUMNS)) and not rows[4:].any()
    field = dict(zip(COLUMNS, rows[FIELD].tolist(), strict=True))
    assert field == {
        "role": 1 + ROLES.index("field"),
        "left": 10, "top": 180, "right": 110, "bottom": 230,
        "clickable": 1, "editable": 1, "enabled": 1, "focused": 0, "scrollable": 0,
        "checked": 0, "selected": 0,
    }  # fmt: skip
    assert observation["screen"].splitlines()[SAVE] == '0: button "Save"'
    assert np.array_equal(rows, env.step(999)[0]["elements"])
    assert info["observation"].app == observation["app"] == "notes"
    env.close()


class Unusual(Notebook):
    elements_extra = (
        Element(index=4, role="switch", text="Café “€”\t", checked=False, selected=True),
        Element(index=5, role="shape", bounds=(-9, 0, 99_999, 5)),
    )


def test_any_text_and_any_bounds_fit() -> None:
    env = GymView(Unusual, tasks=("write",), seeds=(3,))
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert '4: switch "Caf\\xe9 \\u201c\\u20ac\\u201d\\t" off selected' in observation["screen"]
    assert observation["elements"][4, -2:].tolist() == [1, 2]
    assert observation["elements"][4, 1:5].tolist() == [-1] * 4
    assert observation["elements"][5, 1:5].tolist() == [-9, 0, 32_767, 5]
    env.close()


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        (Sizes(elements=3), "4 elements of the screen do not fit into 3"),
        (Sizes(text=20), "characters of the goal do not fit into 20: use Sizes"),
        (Sizes(actions=4), "actions on the screen do not fit into 4"),
        (Sizes(screenshot=(8, 8)), "has no screenshots"),
    ],
)
def test_a_screen_that_does_not_fit_is_told_not_cut(sizes: Sizes, complaint: str) -> None:
    env = GymView(Notebook, sizes=sizes)
    with pytest.raises(ConfigError, match=complaint):
        env.reset(seed=1)
    env.close()


@pytest.mark.parametrize("how", ["raise", "tell"])
def test_a_fault_is_never_a_reward(how: Any) -> None:
    def make() -> Environment:
        return FaultInjector(Notebook(), at={"step": [1]}, how=how)

    env = GymView(make)
    env.reset(seed=1)
    env.step(999)
    with pytest.raises(EnvironmentFault, match="injected fault in step, call 1"):
        env.step(999)
    env.reset(seed=1)
    env.step(999)
    env.close()


def test_a_box_whose_edges_are_not_in_order_is_left_out_of_a_sketch() -> None:
    boxes = ((10, 10, 60, 40), (80, 30, 60, 20), (5, 5, 5, 5))
    elements = [Element(index=k, role="button", bounds=box) for k, box in enumerate(boxes)]
    first = drawn(Observation(goal="g", elements=tuple(elements[:1])))
    assert (
        drawn(Observation(goal="g", elements=tuple(elements)))[10:, 10:] == first[10:, 10:]
    ).all()


def test_a_screen_is_rendered_as_text_or_picture() -> None:
    env = GymView(Notebook, render_mode="ansi")
    assert env.render() is None
    env.reset(seed=1)
    assert env.render().splitlines()[DELETE] == '1: button "Delete note"'
    env.close()
    env = GymView(Unusual, render_mode="rgb_array")
    env.reset(seed=1)
    sketch = env.render()
    assert sketch.dtype == np.uint8 and sketch.shape[2] == 3 and sketch.min() < 100
    env.close()
    with pytest.raises(ConfigError, match="render_mode is 'human', expected one of ansi"):
        GymView(Notebook, render_mode="human")  # type: ignore[arg-type]


def test_vectors_of_views() -> None:
    register("swarm_ui/Many-v0", Notebook, tasks=("write",))
    try:
        many = gymnasium.make_vec("swarm_ui/Many-v0", num_envs=3)
        observation, info = many.reset(seed=1)
        assert len(observation["goal"]) == 3 and info["action_mask"].shape == (3, 1024)
        rewards = many.step(np.array([0, 0, 0]))[1]
        assert rewards.tolist() == [0.0, 0.0, 0.0]
        many.close()
    finally:
        del gymnasium.registry["swarm_ui/Many-v0"]


@pytest.mark.parametrize("view", [GymView, TeamView])
def test_nothing_to_draw_from_is_refused_and_closed(view: Any) -> None:
    before = threading.active_count()
    for options in ({"tasks": ()}, {"seeds": ()}):
        with pytest.raises(ConfigError, match="no tasks or no seeds"):
            view(Notebook, **options)
    assert threading.active_count() == before


# -- PettingZoo -------------------------------------------------------------------------------


def test_the_majority_decides_and_all_get_the_reward() -> None:
    env = TeamView(Notebook, agents=3, tasks=("write",), seeds=(3,))
    observations, infos = env.reset(seed=1)
    assert set(observations) == set(env.agents) == {"agent_0", "agent_1", "agent_2"}
    mask = observations["agent_0"]["action_mask"]
    assert mask.sum() == len(infos["agent_0"]["actions"])
    one, other = act(infos["agent_0"], PRESS), act(infos["agent_0"], TYPE)
    _, rewards, ends, _, infos = env.step({"agent_0": one, "agent_1": other, "agent_2": other})
    assert infos["agent_1"]["decision"].key == TYPE.key and not any(ends.values())
    assert {a: p.key for a, p in infos["agent_0"]["proposals"].items()}["agent_0"] == PRESS.key
    one = act(infos["agent_0"], PRESS)
    _, rewards, ends, cuts, infos = env.step(dict.fromkeys(env.agents, one))
    assert rewards == dict.fromkeys(env.possible_agents, 1.0)
    assert set(ends.values()) == {True} and set(cuts.values()) == {False}
    assert env.agents == [] and set(infos) == set(env.possible_agents)
    env.close()


def test_proposals_that_mean_nothing_do_not_count() -> None:
    env = TeamView(Notebook, agents=["ada", "bob"], tasks=("write",), seeds=(3,))
    _, infos = env.reset(seed=1)
    *_, infos = env.step({"ada": 999, "bob": act(infos["bob"], TYPE)})
    assert infos["ada"]["decision"].key == TYPE.key
    assert infos["ada"]["lost"].startswith("no action 999") and infos["bob"]["lost"] == ""
    *_, infos = env.step({"ada": 999, "bob": 999})
    assert infos["bob"]["note"] == "no agent proposed a valid action"
    *_, infos = env.step({})
    assert infos["bob"]["decision"].action_type == "wait"
    env.close()
    with pytest.raises(ConfigError, match="one or more agents with different names"):
        TeamView(Notebook, agents=["ada", "ada"])


def test_ties_go_to_the_first_agent_and_a_vote_can_be_given() -> None:
    assert majority({"a": PRESS, "b": TYPE}) == PRESS
    assert majority({"a": PRESS, "b": TYPE, "c": TYPE}) == TYPE
    env = TeamView(Notebook, agents=3, vote=lambda p: p["agent_2"], tasks=("write",), seeds=(3,))
    _, infos = env.reset(seed=1)
    one, other = act(infos["agent_0"], PRESS), act(infos["agent_0"], TYPE)
    *_, infos = env.step({"agent_0": one, "agent_1": one, "agent_2": other})
    assert infos["agent_0"]["decision"].key == TYPE.key
    env.close()


# -- what they stand on -----------------------------------------------------------------------


def test_views_work_inside_a_running_loop_and_leave_no_thread() -> None:
    before = threading.active_count()

    async def main() -> float:
        env = GymView(Notebook, tasks=("write",), seeds=(3,), actions="json")
        env.reset(seed=1)
        env.step(TYPE.json())
        reward = env.step(PRESS.json())[1]
        env.close()
        env.close()
        with pytest.raises(EnvironmentFault, match="was closed"):
            env.reset(seed=1)
        return reward

    assert asyncio.run(main()) == 1.0
    assert threading.active_count() == before


def test_an_environment_that_cannot_be_made_leaves_no_thread() -> None:
    before = threading.active_count()

    async def make() -> Environment:
        raise EnvironmentFault("no emulator")

    with pytest.raises(EnvironmentFault, match="no emulator"):
        BlockingEnvironment(make)
    assert threading.active_count() == before


def test_choices_are_what_the_screen_offers() -> None:
    elements = (
        Element(index=0, role="button", text="OK"),
        Element(index=1, role="button", text="Off", enabled=False),
        Element(index=2, role="text", text="Hello", clickable=False),
        Element(index=3, role="field", text="Name", editable=True),
    )
    screen = Observation(goal="g", elements=elements, actions=("click", "input_text", "status"))
    assert [str(action) for action in choices(screen, ("a", "b"))] == [
        "click “OK” [0]",
        "click “Name” [3]",
        "input_text “Name” [3] 'a'",
        "input_text “Name” [3] 'b'",
        "status complete",
        "status infeasible",
    ]
    everything = choices(Observation(goal="g", elements=elements[:1]), ("a",), apps=("notes",))
    kinds = {action.action_type for action in everything}
    assert {"scroll", "open_app", "answer", "navigate_back", "wait"} <= kinds
    assert "long_press" not in kinds


def test_phrases_of_a_goal() -> None:
    found = phrases("Add “oat milk” to Bob's list at 9:30")
    assert found[0] == "oat milk"
    assert {"Bob's", "9:30", "list at 9:30", "milk"} <= set(found)
    assert len(found) == len(set(found))


def test_the_extra_is_named_where_it_is_missing() -> None:
    for module in ("gymnasium_view", "pettingzoo_view"):
        code = "import sys; sys.modules['gymnasium'] = None\nimport "
        code += f"swarm_ui.environments.interop.{module}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "pip install 'swarm-ui[gym]'" in done.stderr, done.stderr
