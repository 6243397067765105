"""The handset under upstream's AndroidEnv; needs the extra ``android``."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from swarm_ui.environments.androidworld.handset import (
    APPS,
    Handset,
    android_env,
    android_world_env,
)
from swarm_ui.environments.androidworld.handset.screen.geometry import lay_out
from swarm_ui.environments.phone.state import Screen
from swarm_ui.errors import ConfigError, MissingExtra


def test_without_the_extra_the_message_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("android_env")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "android_env", None)
    monkeypatch.setitem(sys.modules, "android_world", None)
    for name in ("simulator", "upstream_world"):
        monkeypatch.delitem(
            sys.modules, f"swarm_ui.environments.androidworld.handset.{name}", raising=False
        )
    with pytest.raises(MissingExtra, match=r"swarm-ui\[android\]"):
        android_env(Handset(APPS))
    with pytest.raises(ConfigError, match="google-research/android_world"):
        android_world_env(Handset(APPS))


def act(env: Any, kind: int, x: float, y: float) -> Any:
    import numpy as np

    return env.step(
        {
            "action_type": np.array(kind, dtype=np.int32),
            "touch_position": np.array([x, y], dtype=np.float32),
        }
    )


def centre(handset: Handset, text: str) -> tuple[float, float]:
    one = next(p for p in lay_out(handset).placed if p.widget.text == text)
    left, top, right, bottom = one.pixels
    return (left + right) / 2 / 1080, (top + bottom) / 2 / 2400


def tap(env: Any, handset: Handset, text: str) -> Any:
    x, y = centre(handset, text)
    act(env, 0, x, y)
    return act(env, 1, x, y)


def test_touches_and_pixels() -> None:
    pytest.importorskip("android_env", reason="needs the extra 'android'")
    handset = Handset(APPS)
    env = android_env(handset)
    assert env.observation_spec()["pixels"].shape == (2400, 1080, 3)
    home = env.reset().observation["pixels"].copy()
    tap(env, handset, "settings")
    step = tap(env, handset, "network")
    assert handset.stack[-1] == Screen("settings", "category", "network")
    assert (step.observation["pixels"] != home).any()
    tap(env, handset, "wifi")
    assert handset.settings["wifi"] == "on"
    for k in range(12):
        act(env, 0, 0.5, 0.8 - 0.05 * k)
    act(env, 1, 0.5, 0.2)
    assert handset.settings["wifi"] == "on", "a swipe is no tap"
    env.close()


def test_many_touches_in_one_place_are_a_long_press() -> None:
    pytest.importorskip("android_env", reason="needs the extra 'android'")
    handset = Handset(APPS)
    handset.write("/sdcard/Documents/Markor/a.md", b"x")
    handset.launch("markor")
    env = android_env(handset)
    env.reset()
    x, y = centre(handset, "a.md")
    for _ in range(12):
        act(env, 0, x, y)
    act(env, 1, x, y)
    assert len(handset.picked) == 1
    env.close()


def test_adb_calls_and_their_errors() -> None:
    pytest.importorskip("android_env", reason="needs the extra 'android'")
    from android_env.components import errors
    from android_env.proto import adb_pb2

    handset = Handset(APPS)
    env = android_env(handset)
    env.reset()

    def ask(**command: Any) -> Any:
        return env.execute_adb_call(adb_pb2.AdbRequest(**command))

    clock = "com.google.android.deskclock/com.android.deskclock.DeskClock"
    started = ask(start_activity=adb_pb2.AdbRequest.StartActivity(full_activity=clock))
    assert started.status == adb_pb2.AdbResponse.Status.OK
    now = ask(get_current_activity=adb_pb2.AdbRequest.GetCurrentActivity())
    assert now.get_current_activity.full_activity == clock
    put = adb_pb2.AdbRequest.Push(path="/sdcard/a.bin", content=b"\x00\xff")
    assert ask(push=put).status == adb_pb2.AdbResponse.Status.OK
    assert ask(pull=adb_pb2.AdbRequest.Pull(path="/sdcard/a.bin")).pull.content == b"\x00\xff"
    turned = ask(get_orientation=adb_pb2.AdbRequest.GetOrientationRequest())
    assert turned.get_orientation.orientation == 0
    packages = adb_pb2.AdbRequest.PackageManagerRequest.List.Packages()
    listed = adb_pb2.AdbRequest.PackageManagerRequest(
        list=adb_pb2.AdbRequest.PackageManagerRequest.List(packages=packages)
    )
    assert "net.gsantner.markor" in ask(package_manager=listed).package_manager.list.items
    with pytest.raises(errors.AdbControllerError, match="does not support 'adb shell reboot'"):
        ask(generic=adb_pb2.AdbRequest.GenericRequest(args=["shell", "reboot"]))
    env.close()


def test_several_in_one_process_share_nothing() -> None:
    pytest.importorskip("android_env", reason="needs the extra 'android'")
    handsets = [Handset(APPS) for _ in range(3)]
    envs = [android_env(handset) for handset in handsets]
    for env in envs:
        env.reset()
    tap(envs[1], handsets[1], "settings")
    assert [handset.stack for handset in handsets] == [(), (Screen("settings"),), ()]
    for env in envs:
        env.close()


def test_states_are_saved_and_taken_up_again() -> None:
    pytest.importorskip("android_env", reason="needs the extra 'android'")
    from android_env.proto import state_pb2

    handset = Handset(APPS)
    env = android_env(handset)
    home = env.reset().observation["pixels"].copy()
    assert env.save_state(state_pb2.SaveStateRequest()).status == 1
    away = tap(env, handset, "settings").observation["pixels"].copy()
    assert env.load_state(state_pb2.LoadStateRequest()).status == 1
    back = act(env, 1, 0.0, 0.0).observation["pixels"]
    assert (away != home).any()
    assert (back == home).all()
    missing = env.load_state(state_pb2.LoadStateRequest(args={"name": "none"}))
    assert "no such state" in missing.error_message
    env.close()


def test_the_forest_is_what_is_shown() -> None:
    pytest.importorskip("android_env", reason="needs the extra 'android'")
    from swarm_ui.environments.androidworld.handset.simulator import accessibility_forest

    handset = Handset(APPS)
    handset.launch("contacts")
    handset.show((*handset.stack, Screen("contacts", "form")), {"first": "Ann"})
    app, status = accessibility_forest(handset).windows
    by_id = {node.unique_id: node for node in app.tree.nodes}
    assert by_id[0].depth == 0
    below = [child for node in app.tree.nodes for child in node.child_ids]
    assert sorted(below) == [number for number in by_id if number]
    assert all(by_id[child].depth == node.depth + 1
               for node in app.tree.nodes for child in node.child_ids)  # fmt: skip
    (first,) = [node for node in app.tree.nodes if node.hint_text == "First name"]
    assert (first.text, first.is_editable, first.is_visible_to_user) == ("Ann", True, True)
    assert {node.package_name for node in status.tree.nodes} == {"com.android.systemui"}
