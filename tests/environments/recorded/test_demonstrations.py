"""Recordings of people as demonstrations: what ``play`` writes, and AndroidControl's style."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swarm_ui.action import Action
from swarm_ui.environments import check_environment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.environments.recorded.android_records import read_android_records
from swarm_ui.environments.recorded.demonstrations import read_demonstrations
from swarm_ui.errors import ConfigError, TraceError


async def play(path: Path, task: str, seed: int, *, give_up: bool = False) -> PlaySession:
    phone = PhoneEnvironment()
    session = PlaySession(phone, path, "person")
    await session.begin(task, seed)
    while not session.ended:
        await session.act(phone.expert())
        if give_up:
            session.leave()
    return session


async def test_a_played_episode_is_a_demonstration(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    await play(path, "notes-create", 3)
    session = await play(path, "contacts-add", 7)
    await play(path, "contacts-add", 8, give_up=True)
    recordings = read_demonstrations(path)
    assert recordings.name == "demonstrations on phone (simulated)" and recordings.left_out == 1
    assert recordings.jobs() == [("notes-create", 3), ("contacts-add", 7)]
    assert session.episode is not None
    world = recordings.environment()
    screen = await world.reset(task="contacts-add", seed=7)
    for record in session.episode.steps:
        assert screen.elements == record.trace.observation.elements
        action = world.expert()
        assert record.executed is not None and action.key == record.executed.key
        assert world.grade(action) == 1.0 and world.grade(Action(action_type="wait")) == 0.0
        step = await world.step(action)
        screen = step.observation
    assert step.terminated and step.reward == 1.0
    with pytest.raises(ConfigError):
        await world.reset(task="contacts-add", seed=8)


async def test_undone_steps_are_not_demonstrated(tmp_path: Path) -> None:
    phone, path = PhoneEnvironment(), tmp_path / "mine.jsonl"
    session = PlaySession(phone, path, "person")
    await session.begin("contacts-add", 7)
    await session.act(Action(action_type="navigate_home"))
    assert session.undo()
    while not session.ended:
        await session.act(phone.expert())
    recordings = read_demonstrations(path)
    ((steps),) = recordings.steps.values()
    assert all(step.action.action_type != "navigate_home" for step in steps)


async def test_demonstrations_keep_the_contract(tmp_path: Path) -> None:
    await play(tmp_path / "mine.jsonl", "contacts-add", 7)
    recordings = read_demonstrations(tmp_path / "mine.jsonl")
    report = check_environment(recordings.environment, seeds=(7,))
    assert report.ok, report.broken


async def test_files_without_demonstrations(tmp_path: Path) -> None:
    await play(tmp_path / "lost.jsonl", "contacts-add", 7, give_up=True)
    await play(tmp_path / "two.jsonl", "contacts-add", 7)
    lines = (tmp_path / "two.jsonl").read_text()
    (tmp_path / "two.jsonl").write_text(lines + lines.replace("phone (simulated)", "fridge"))
    for name in ("lost.jsonl", "two.jsonl"):
        with pytest.raises(ConfigError, match=name):
            read_demonstrations(tmp_path / name)
    with pytest.raises(TraceError, match="nowhere"):
        read_demonstrations(tmp_path / "nowhere.jsonl")


# -- records of Android devices ---------------------------------------------------------------


def node(box: tuple[int, int, int, int], **fields: Any) -> dict[str, Any]:
    names = ("left", "top", "right", "bottom")
    about = {"package_name": "com.invented.tasks", "is_visible_to_user": True, "is_enabled": True}
    return {**about, "bounds_in_screen": dict(zip(names, box, strict=True)), **fields}


def forest(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"windows": [{"tree": {"nodes": list(nodes)}}]}


FRAME = node((0, 0, 100, 200), class_name="android.widget.FrameLayout")
NEW = node((0, 150, 100, 200), text="New", class_name="android.widget.Button", is_clickable=True)
FIELD = node((0, 0, 100, 50), hint_text="Title", class_name="android.widget.EditText",
             is_editable=True, is_clickable=True, is_focused=True)  # fmt: skip
EPISODE: dict[str, Any] = {
    "episode_id": 12,
    "goal": "Add the task mop the hall",
    "actions": [
        {"action_type": "open_app", "app_name": "Tasks"},
        {"action_type": "click", "x": 50, "y": 170},
        {"action_type": "input_text", "text": "mop the hall"},
        {"action_type": "scroll", "direction": "down"},
    ],
    "accessibility_trees": [
        forest(FRAME), forest(FRAME, NEW), forest(FRAME, FIELD, NEW), forest(FRAME, FIELD),
        forest(FRAME, {**FIELD, "text": "mop the hall"}),
    ],
    "screenshots": ["not read"],
    "step_instructions": ["not read"],
}  # fmt: skip


def written(path: Path, *episodes: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(episode) + "\n" for episode in episodes))
    return path


def test_actions_are_found_on_their_screens(tmp_path: Path) -> None:
    found = read_android_records(written(tmp_path / "a.jsonl", EPISODE))
    assert found.left_out == 0
    ((job, steps),) = found.steps.items()
    assert job == ("episode-12", 0)
    assert [step.action.json() for step in steps] == [
        '{"action_type":"open_app","app_name":"Tasks"}',
        '{"action_type":"click","target":"New","index":0}',
        '{"action_type":"input_text","target":"Title","index":0,"text":"mop the hall"}',
        '{"action_type":"scroll","direction":"down"}',
        '{"action_type":"status","goal_status":"complete"}',
    ]
    last = steps[-1].observation
    assert [past.action.action_type for past in last.history] == [
        "open_app", "click", "input_text", "scroll"
    ]  # fmt: skip
    assert last.elements[0].value == "mop the hall" and last.app == "tasks"


def test_a_flag_that_protobuf_leaves_out_is_false(tmp_path: Path) -> None:
    """protobuf's JSON has no field that is false, so a hidden node has no flag."""
    hidden = node((40, 160, 60, 180), text="Behind", is_clickable=True)
    del hidden["is_visible_to_user"]
    grey = {**NEW, "text": "Off", "bounds_in_screen": {"right": 100, "bottom": 50}}
    del grey["is_enabled"]
    screens = [forest(FRAME), forest(FRAME, NEW, hidden, grey), *EPISODE["accessibility_trees"][2:]]
    found = read_android_records(
        written(tmp_path / "a.jsonl", {**EPISODE, "accessibility_trees": screens})
    )
    (steps,) = found.steps.values()
    assert [(e.label, e.enabled) for e in steps[1].observation.elements] == [
        ("New", True), ("Off", False)
    ]  # fmt: skip
    assert steps[1].action.target == "New"


def test_what_is_not_for_training_or_has_no_element_is_left_out(tmp_path: Path) -> None:
    beside = {"action_type": "click", "x": 1, "y": 1}
    lost = {**EPISODE, "actions": [EPISODE["actions"][0], beside, *EPISODE["actions"][2:]]}
    test = {**EPISODE, "episode_id": "t", "split": "test"}
    found = read_android_records(written(tmp_path / "a.jsonl", lost, test))
    (steps,) = found.steps.values()
    assert [step.action.action_type for step in steps] == [
        "open_app", "input_text", "scroll", "status"
    ]  # fmt: skip
    assert found.left_out == 1 and list(found.tasks) == ["episode-12"]
    with pytest.raises(ConfigError, match=r"b\.jsonl"):
        read_android_records(written(tmp_path / "b.jsonl", test))


def test_two_records_of_one_name_are_refused(tmp_path: Path) -> None:
    named = {**EPISODE, "episode_id": 1}
    unnamed = {name: value for name, value in EPISODE.items() if name != "episode_id"}
    found = read_android_records(written(tmp_path / "a.jsonl", unnamed, named))
    assert found.tasks == ("episode-0", "episode-1")
    for second in (named, unnamed):  # the number of the unnamed one is 1
        path = written(tmp_path / "b.jsonl", named, second)
        with pytest.raises(ConfigError, match=r"record 1: 'episode-1' is also .* record 0"):
            read_android_records(path)


@pytest.mark.parametrize(
    "change",
    [
        {"accessibility_trees": []},
        {"actions": [{"action_type": "click"}] * 4},
        {"actions": [{"action_type": "fly"}] * 4},
        {"goal": 3},
    ],
)
def test_wrong_records_name_themselves(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="record 0"):
        read_android_records(written(tmp_path / "a.jsonl", {**EPISODE, **change}))
