"""The AndroidWorld adapter, against a small imitation of upstream's package."""

from __future__ import annotations

import random
import sys
import threading
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments import check_environment
from swarm_ui.environments.androidworld.emulator import Emulator
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.errors import ConfigError, EnvironmentFault

DONE = Action(action_type="status", goal_status="complete")


@dataclass
class FakeElement:
    text: str | None = None
    class_name: str = "android.widget.TextView"
    content_description: str | None = None
    hint_text: str | None = None
    bbox_pixels: Any = field(
        default_factory=lambda: SimpleNamespace(x_min=0, x_max=10, y_min=0, y_max=10)
    )
    is_visible: bool | None = True
    is_checked: bool | None = None
    is_checkable: bool | None = None
    is_clickable: bool | None = True
    is_editable: bool | None = None
    is_enabled: bool | None = True
    is_focused: bool | None = None
    is_scrollable: bool | None = None
    is_selected: bool | None = None
    package_name: str = "com.example"


OFF_SCREEN = SimpleNamespace(x_min=0, x_max=10, y_min=900, y_max=950)
EMPTY_BOX = SimpleNamespace(x_min=5, x_max=5, y_min=0, y_max=10)


class AdbControllerError(Exception):
    """As android-env's: known by its name."""


class FakePixels:
    """As much of upstream's RGB array as the adapter reads."""

    shape = (2, 1, 3)

    def tobytes(self) -> bytes:
        return bytes(6)


class FakeDevice:
    logical_screen_size = (100, 200)

    def __init__(self) -> None:
        self.done: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.resting = threading.Event()
        self.resting.set()
        self.elements = [
            FakeElement("hidden", is_visible=False),
            FakeElement("Wi-Fi", class_name="android.widget.Switch", is_checkable=True),
            FakeElement("below", bbox_pixels=OFF_SCREEN),
            FakeElement("thin", bbox_pixels=EMPTY_BOX),
            FakeElement("abc", class_name="android.widget.EditText", hint_text="Name"),
            FakeElement(class_name="android.widget.ImageButton", content_description="More"),
        ]

    def reset(self, go_home: bool) -> None:
        self.calls.append(f"reset home={go_home}")

    def hide_automation_ui(self) -> None:
        self.calls.append("hide")

    def get_state(self, wait_to_stabilize: bool = False) -> Any:
        self.resting.wait(timeout=5.0)
        return SimpleNamespace(ui_elements=list(self.elements), pixels=FakePixels())

    def execute_action(self, action: Any) -> None:
        if action.fields.get("app_name") == "broken":
            raise OSError("adb: device offline")
        if action.fields.get("app_name") == "no such app":
            raise AdbControllerError("monkey: no activities found")
        self.done.append(action.fields)

    def close(self) -> None:
        self.calls.append("close")


class FakeTask:
    complexity = 0.35
    start_on_home_screen = True
    success = 1.0
    breaks = ""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.goal = f"Turn on Wi-Fi {params['number']}"

    @classmethod
    def set_device_time(cls, device: FakeDevice) -> None:
        device.calls.append("time")

    @classmethod
    def generate_random_params(cls) -> dict[str, Any]:
        return {"number": random.randrange(10**6)}

    def initialize_task(self, device: FakeDevice) -> None:
        device.calls.append(f"initialize seed={self.params['seed']}")
        if self.breaks == "initialize":
            raise RuntimeError("no such app")

    def is_successful(self, device: FakeDevice) -> float:
        device.calls.append("check")
        return self.success

    def tear_down(self, device: FakeDevice) -> None:
        device.calls.append("tear down")
        if self.params.get("sticks"):
            raise RuntimeError("nothing to tear down")


class FakeJSONAction:
    """It accepts what upstream's accepts."""

    KNOWN = frozenset({"action_type", "index", "x", "y", "text", "direction", "goal_status",
                       "app_name", "keycode", "clear_text"})  # fmt: skip

    def __init__(self, **fields: Any) -> None:
        for name in fields.keys() - self.KNOWN:
            raise TypeError(f"JSONAction got an unexpected keyword argument '{name}'")
        if not fields.get("keycode", "KEYCODE_").startswith("KEYCODE_"):
            raise ValueError(f"Invalid keycode: {fields['keycode']}")
        self.fields = fields


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    """A fake device behind fake upstream modules; the task is ``WifiOn``."""
    made = FakeDevice()

    class Registry:
        def get_registry(self, family: str) -> dict[str, Any]:
            return {"WifiOn": FakeTask, "MiniWoBClick": FakeTask}

    parts: dict[str, dict[str, Any]] = {
        "android_world": {"__path__": []},
        "android_world.env": {"__path__": []},
        "android_world.registry": {"TaskRegistry": Registry},
        "android_world.env.env_launcher": {"load_and_setup_env": lambda **launch: made},
        "android_world.env.json_action": {"JSONAction": FakeJSONAction},
        "android_world.task_evals": {"__path__": []},
        "android_world.task_evals.miniwob": {"__path__": []},
        "android_world.task_evals.miniwob.miniwob_base": {
            "is_episode_terminated": lambda device: bool(device.done)
        },
    }
    for name, members in parts.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(Emulator, "listens", lambda emulator: True)
    return made


@pytest.fixture
def env(device: FakeDevice) -> AndroidWorldEnvironment:
    return AndroidWorldEnvironment(pause=0.0)


async def test_the_contract_is_kept(device: FakeDevice) -> None:
    check_environment(lambda: AndroidWorldEnvironment(pause=0.0), tasks=["WifiOn"])


async def test_elements_are_filtered_and_told_in_our_words(env: AndroidWorldEnvironment) -> None:
    screen = await env.reset(task="WifiOn", seed=1)
    assert isinstance(env, Environment)
    assert env.tasks == ("WifiOn", "MiniWoBClick")
    assert [(e.index, e.role, e.label) for e in screen.elements] == [
        (0, "switch", "Wi-Fi"),
        (1, "field", "Name"),
        (2, "icon", "More"),
    ]
    switch, name, _ = screen.elements
    assert switch.checked is False
    assert (name.value, name.text, name.editable) == ("abc", "", True)
    assert screen.app == "com.example"
    assert screen.png is None


async def test_actions_use_upstreams_numbering(
    env: AndroidWorldEnvironment, device: FakeDevice
) -> None:
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(Action(action_type="input_text", index=1, text="x", target="Name"))
    assert device.done == [{"action_type": "input_text", "index": 4, "text": "x"}]
    assert [(past.role, past.label) for past in step.observation.history] == [("field", "Name")]
    await env.step(Action(action_type="scroll", direction="down"))
    assert device.done[-1] == {"action_type": "scroll", "direction": "down"}


async def test_an_app_that_is_not_there_is_a_lost_step(env: AndroidWorldEnvironment) -> None:
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(Action(action_type="open_app", app_name="no such app"))
    assert "no app 'no such app'" in step.note
    assert not step.ended


async def test_lost_steps_reach_no_device(env: AndroidWorldEnvironment, device: FakeDevice) -> None:
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(Action(action_type="click", index=3))
    assert "no element 3" in step.note
    step = await env.step(Action(action_type="select", index=0, text="x"))
    assert "no 'select'" in step.note
    assert device.done == []


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Action(action_type="swipe", index=0, to_index=1), "has no drag"),
        (Action(action_type="swipe", x=1, y=2, to_x=3, to_y=4), "has no drag"),
        (Action(action_type="keyboard_enter", keycode="ENTER"), "no key 'ENTER'"),
        (Action(action_type="click", index=0, keycode=""), "no key ''"),
    ],
)
async def test_what_upstream_cannot_express_is_a_lost_step_and_no_fault(
    env: AndroidWorldEnvironment, device: FakeDevice, action: Action, why: str
) -> None:
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(action)
    assert why in step.note and not step.ended
    assert device.done == []


@pytest.mark.parametrize(
    "error",
    [ValueError("element index 5 is out of range"), IndexError("list index out of range")],
)
async def test_an_element_that_has_gone_meanwhile_is_a_lost_step(
    env: AndroidWorldEnvironment,
    device: FakeDevice,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    """Upstream reads the screen once more before it acts."""

    def gone(device: FakeDevice, action: Any) -> None:
        raise error

    monkeypatch.setattr(FakeDevice, "execute_action", gone)
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(Action(action_type="click", index=2))
    assert "out of range" in step.note and not step.ended


@pytest.mark.parametrize(("share", "reward"), [(1.0, 1.0), (0.5, 0.0), (0.0, 0.0)])
async def test_success_is_checked_when_the_agent_declares(
    env: AndroidWorldEnvironment,
    device: FakeDevice,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
    reward: float,
) -> None:
    monkeypatch.setattr(FakeTask, "success", share)
    await env.reset(task="WifiOn", seed=1)
    step = await env.step(DONE)
    assert (step.reward, step.terminated, step.truncated) == (reward, True, False)
    assert ("0.50" in step.note) == (share == 0.5)
    assert device.calls[-2:] == ["check", "tear down"]


async def test_without_a_declaration_the_budget_ends_it_unchecked(
    env: AndroidWorldEnvironment, device: FakeDevice
) -> None:
    await env.reset(task="WifiOn", seed=1)  # complexity 0.35: 3 steps
    click = Action(action_type="click", index=0)
    steps = [await env.step(click) for _ in range(3)]
    assert [step.truncated for step in steps] == [False, False, True]
    assert steps[-1].reward == 0.0
    assert "check" not in device.calls
    assert device.calls[-1] == "tear down"
    with pytest.raises(EnvironmentFault, match="no episode"):
        await env.step(click)


async def test_equal_seeds_draw_equal_tasks_and_leave_our_generator_alone(
    env: AndroidWorldEnvironment, device: FakeDevice
) -> None:
    before = random.getstate()
    goals = [(await env.reset(task="WifiOn", seed=seed)).goal for seed in (1, 2, 1)]
    assert goals[0] == goals[2] != goals[1]
    assert random.getstate() == before
    assert device.calls[:4] == ["time", "initialize seed=1", "reset home=True", "hide"]
    assert device.calls.count("tear down") == 2
    await env.close()
    assert device.calls[-2:] == ["tear down", "close"]


async def test_a_broken_device_is_a_fault_and_the_next_reset_works(
    env: AndroidWorldEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.reset(task="WifiOn", seed=1)
    with pytest.raises(EnvironmentFault, match="device offline"):
        await env.step(Action(action_type="open_app", app_name="broken"))
    with monkeypatch.context() as patch:
        patch.setattr(FakeTask, "breaks", "initialize")
        with pytest.raises(EnvironmentFault, match=r"set up WifiOn.*no such app"):
            await env.reset(task="WifiOn", seed=1)
    assert (await env.reset(task="WifiOn", seed=1)).elements


@pytest.mark.parametrize("sticks", [False, True])
async def test_a_fault_in_reset_stays_in_its_episode(
    env: AndroidWorldEnvironment,
    device: FakeDevice,
    monkeypatch: pytest.MonkeyPatch,
    sticks: bool,
) -> None:
    """Upstream's BrowserMaze can neither be set up nor torn down without Chrome."""
    monkeypatch.setattr(FakeTask, "breaks", "initialize")
    monkeypatch.setattr(
        FakeTask, "generate_random_params", classmethod(lambda cls: {"number": 1, "sticks": sticks})
    )
    with pytest.raises(EnvironmentFault, match="no such app") as fault:
        await env.reset(task="WifiOn", seed=1)
    assert ("nothing to tear down" in str(fault.value)) == sticks
    assert device.calls[-1] == "tear down"
    monkeypatch.setattr(FakeTask, "breaks", "")
    monkeypatch.setattr(FakeTask, "generate_random_params", classmethod(lambda cls: {"number": 2}))
    await env.reset(task="WifiOn", seed=2)
    step = await env.step(DONE)
    assert (step.reward, step.terminated) == (1.0, True)


async def test_screenshots_are_png(device: FakeDevice) -> None:
    screen = await AndroidWorldEnvironment(screenshots=True).reset(task="WifiOn", seed=1)
    assert screen.png is not None
    assert screen.png.startswith(b"\x89PNG")


async def test_wrong_task_is_named(env: AndroidWorldEnvironment) -> None:
    with pytest.raises(ConfigError, match="WifiOff"):
        await env.reset(task="WifiOff", seed=1)


async def test_a_page_ends_its_episode_itself(
    env: AndroidWorldEnvironment, device: FakeDevice
) -> None:
    await env.reset(task="MiniWoBClick", seed=1)
    step = await env.step(Action(action_type="click", index=0))
    assert (step.reward, step.terminated) == (1.0, True)
    await env.reset(task="WifiOn", seed=1)
    assert not (await env.step(Action(action_type="click", index=0))).ended


async def test_the_budget_can_be_set(device: FakeDevice) -> None:
    env = AndroidWorldEnvironment(pause=0.0, budget=2)
    await env.reset(task="WifiOn", seed=1)
    assert env.budget == 2
    steps = [await env.step(Action(action_type="click", index=0)) for _ in range(2)]
    assert [step.truncated for step in steps] == [False, True]
    for wrong in ({"budget": 0}, {"family": "ios_world"}):
        with pytest.raises(ConfigError, match=r"budget|ios_world"):
            AndroidWorldEnvironment(**wrong)  # type: ignore[arg-type]


async def test_a_step_that_hangs_is_a_fault_and_the_device_is_given_up(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[FakeDevice] = []

    def connect() -> FakeDevice:
        opened.append(device)
        return device

    env = AndroidWorldEnvironment(pause=0.0, connect=connect, timeout=0.05)
    await env.reset(task="WifiOn", seed=1)
    device.resting.clear()
    with pytest.raises(EnvironmentFault, match=r"no answer within 0\.05 s"):
        await env.step(Action(action_type="click", index=0))
    device.resting.set()
    await env.reset(task="WifiOn", seed=1)
    assert len(opened) == 2


async def test_a_timeout_of_upstream_itself_keeps_its_reason_and_the_device(
    env: AndroidWorldEnvironment, device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(device: FakeDevice, action: Any) -> None:
        raise TimeoutError("adb took too long")

    await env.reset(task="WifiOn", seed=1)
    with monkeypatch.context() as patch:
        patch.setattr(FakeDevice, "execute_action", slow)
        with pytest.raises(EnvironmentFault, match="adb took too long"):
            await env.step(Action(action_type="click", index=0))
    await env.close()
    assert device.calls[-2:] == ["tear down", "close"]


async def test_a_device_is_closed_although_its_task_cannot_be_torn_down(
    env: AndroidWorldEnvironment, device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        FakeTask, "generate_random_params", classmethod(lambda cls: {"number": 1, "sticks": True})
    )
    await env.reset(task="WifiOn", seed=1)
    with pytest.raises(EnvironmentFault, match="nothing to tear down"):
        await env.close()
    assert device.calls[-1] == "close"


async def test_without_an_emulator_the_message_says_how_to_start_one(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Emulator, "listens", lambda emulator: False)
    env = AndroidWorldEnvironment(launch={"console_port": 5600, "grpc_port": 8600})
    with pytest.raises(EnvironmentFault, match=r"emulator -avd .*-port 5600 -grpc 8600"):
        await env.reset(task="WifiOn", seed=1)


async def test_the_hint_of_an_empty_field_is_not_its_value(
    env: AndroidWorldEnvironment, device: FakeDevice
) -> None:
    device.elements = [FakeElement("Name", class_name="android.widget.EditText", hint_text="Name")]
    (name,) = (await env.reset(task="WifiOn", seed=1)).elements
    assert (name.value, name.hint) == ("", "Name")


async def test_the_missing_package_names_where_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "android_world", None)
    for name in ("android_world.registry", "android_world.env.env_launcher"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ConfigError, match=r"github\.com/google-research/android_world"):
        await AndroidWorldEnvironment().reset(task="WifiOn", seed=1)
