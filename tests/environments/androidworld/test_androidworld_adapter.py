"""The AndroidWorld adapter, against a small imitation of upstream's package."""

from __future__ import annotations

import importlib
import random
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import android_forest
import pytest

from swarm_ui.action import Action
from swarm_ui.environments import check_environment
from swarm_ui.environments.androidworld.environment import (
    AndroidWorldEnvironment,
    Emulator,
    suite,
)
from swarm_ui.errors import ConfigError, EnvironmentFault

DONE = Action(action_type="status", goal_status="complete")
CLICK = Action(action_type="click", index=0)
UPSTREAM = Path(android_forest.__file__).parent / "upstream"


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in for upstream's package; a task succeeds if the agent declares it."""
    monkeypatch.syspath_prepend(str(UPSTREAM))
    registry = importlib.import_module("android_world.registry")
    monkeypatch.setattr(registry.WifiOn, "verdict", 1.0)
    monkeypatch.setattr(Emulator, "listens", lambda emulator: True)
    yield registry.WifiOn
    for name in [name for name in sys.modules if name.startswith("android_world")]:
        del sys.modules[name]


@pytest.fixture
def device(upstream: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device that all environments of a test open."""
    launcher = importlib.import_module("android_world.env.env_launcher")
    made = launcher.Device(5554)
    monkeypatch.setattr(launcher, "load_and_setup_env", lambda **launch: made)
    return made


@pytest.fixture
def env(device: Any) -> AndroidWorldEnvironment:
    return AndroidWorldEnvironment(Emulator(), pause=0.0)


async def test_the_contract_is_kept(device: Any) -> None:
    check_environment(lambda: AndroidWorldEnvironment(Emulator(), pause=0.0), tasks=["WifiOn"])


async def test_elements_are_touched_in_their_middle(
    env: AndroidWorldEnvironment, device: Any
) -> None:
    screen = await env.reset(task="WifiOn", seed=1)
    assert [e.label for e in screen.elements] == ["Wi-Fi of 5554", "Name", "more"]
    typing = Action(action_type="input_text", index=1, text="x", target="Name")
    step = await env.step(typing)
    typed = {"action_type": "input_text", "x": 50, "y": 80, "text": "x"}
    assert device.done == [{**typed, "clear_text": True}]
    assert [(past.role, past.label) for past in step.observation.history] == [("field", "Name")]
    await env.step(Action(action_type="input_text", index=1, text="x", clear_text=False))
    assert device.done[-1] == {**typed, "clear_text": False}
    await env.step(Action(action_type="scroll", index=2, direction="down"))
    assert device.done[-1] == {"action_type": "scroll", "index": 1, "direction": "down"}


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Action(action_type="click", index=3), "no element 3"),
        (Action(action_type="select", index=0, text="x"), "no 'select'"),
        (Action(action_type="swipe", index=0, to_index=1), "no drag"),
        (Action(action_type="swipe", x=1, y=2, to_x=3, to_y=4), "no drag"),
        (Action(action_type="keyboard_enter", keycode="ENTER"), "no key 'ENTER'"),
        (Action(action_type="open_app", app_name="no such app"), "no app 'no such app'"),
        (Action(action_type="open_app", app_name="gone"), "out of range"),
    ],
)
async def test_what_cannot_be_done_is_a_lost_step_and_no_fault(
    env: AndroidWorldEnvironment, device: Any, action: Action, why: str
) -> None:
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(action)
    assert why in step.note and not step.ended
    assert device.done == []


@pytest.mark.parametrize(
    ("verdict", "reward", "note"),
    [
        (1.0, 1.0, ""),
        (0.5, 0.0, "0.50"),
        (0.0, 0.0, ""),
        (FileNotFoundError(), 0.0, "no data"),
        (sqlite3.OperationalError("no such table"), 0.0, "no data"),
    ],
)
async def test_success_is_checked_when_the_agent_declares(
    env: AndroidWorldEnvironment,
    device: Any,
    upstream: Any,
    monkeypatch: pytest.MonkeyPatch,
    verdict: float | Exception,
    reward: float,
    note: str,
) -> None:
    monkeypatch.setattr(upstream, "verdict", verdict)
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(DONE)
    assert (step.reward, step.terminated, step.truncated) == (reward, True, False)
    assert note in step.note
    assert device.calls[-2:] == ["check", "tear down"]


async def test_equal_seeds_give_equal_goals_and_leave_our_generator_alone(
    env: AndroidWorldEnvironment, device: Any
) -> None:
    before = random.getstate()
    goals = [(await env.reset(task="WifiOn", seed=seed)).goal for seed in (1, 2, 1)]
    assert goals[0] == goals[2] != goals[1]
    assert random.getstate() == before
    assert device.calls[:4] == ["time", "initialize seed=1", "reset home=True", "hide"]
    assert device.calls.count("tear down") == 2
    await env.close()
    assert device.calls[-2:] == ["tear down", "close"]


@pytest.mark.parametrize("sticks", [False, True])
async def test_a_fault_stays_in_its_episode(
    env: AndroidWorldEnvironment,
    device: Any,
    upstream: Any,
    monkeypatch: pytest.MonkeyPatch,
    sticks: bool,
) -> None:
    """Upstream's BrowserMaze can neither be set up nor torn down without Chrome."""
    await env.reset(task="WifiOn", seed=1)
    with pytest.raises(EnvironmentFault, match="device offline"):
        await env.step(Action(action_type="open_app", app_name="broken"))
    await env.reset(task="WifiOn", seed=1)
    await env.step(DONE)
    with monkeypatch.context() as patch:
        patch.setattr(upstream, "breaks", True)
        patch.setattr(upstream, "sticks", sticks)
        with pytest.raises(EnvironmentFault, match="no such app"):
            await env.reset(task="WifiOn", seed=1)
    assert device.calls[-1] == "tear down"
    await env.reset(task="WifiOn", seed=2)
    assert (await env.step(DONE)).reward == 1.0


async def test_errors_say_what_to_do(
    env: AndroidWorldEnvironment, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="WifiOff"):
        await env.reset(task="WifiOff", seed=1)
    monkeypatch.setattr(Emulator, "listens", lambda emulator: False)
    dead = AndroidWorldEnvironment(Emulator(console_port=5600, grpc_port=8600))
    with pytest.raises(EnvironmentFault, match=r"emulator -avd .*-port 5600 -grpc 8600"):
        await dead.reset(task="WifiOn", seed=1)
    monkeypatch.setitem(sys.modules, "android_world.registry", None)
    with pytest.raises(ConfigError, match=r"github\.com/google-research/android_world"):
        await AndroidWorldEnvironment("handset").reset(task="WifiOn", seed=1)


def test_jobs_are_upstreams_in_upstreams_order() -> None:
    jobs = suite(["WifiOn", "WifiOff"], combinations=2, seed=30)
    assert [task for task, _ in jobs] == ["WifiOff", "WifiOff", "WifiOn", "WifiOn"]
    assert len({seed for _, seed in jobs}) == 4
    # SHA-256 of "30_WifiOn_0" as a number, modulo 2**32.
    assert jobs[2][1] == 3403284504
