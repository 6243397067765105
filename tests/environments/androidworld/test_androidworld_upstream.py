"""Upstream android_world, unchanged, on a handset: its agent, its runner, its checks.

Runs in a Python of its own, named by SWARM_UI_ANDROID_WORLD_PYTHON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environments.androidworld.process import (
    PYTHON,
    AndroidWorldDevices,
    AndroidWorldProcess,
    Settings,
)
from swarm_ui.errors import EnvironmentFault

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
VERIFY = {
    f"System{what}Verify"
    for what in (
        "BluetoothTurnOff", "BluetoothTurnOn", "BrightnessMax", "BrightnessMin", "WifiTurnOff",
        "WifiTurnOn",
    )
}  # fmt: skip
"""Done before they begin: upstream asks the agent to see that."""
SEEN = {
    "ExpenseAddMultipleFromGallery", "MarkorTranscribeReceipt", "MarkorTranscribeVideo",
    "RecipeAddMultipleRecipesFromImage",
}  # fmt: skip
"""Begin, but want a picture or film read; T3A sees text only."""
SEED = 9
"""For some seeds, such as its own 30, upstream draws an ingredient that no recipe has, and a task
of deletion has nothing to delete. For this one every task has something to do."""
ABSENT = ("Browser",)
"""Their page is a program for a browser, which the handset has not."""


@cache
def python() -> str:
    """A Python with android_world; skips the test if there is none."""
    found = os.environ.get(PYTHON) or sys.executable
    probe = "import android_world.registry, android_env"
    if subprocess.run([found, "-c", probe], capture_output=True, check=False).returncode:
        pytest.skip(f"android_world cannot be imported by {found}; name a Python in {PYTHON}")
    if shutil.which("ffmpeg") is None:
        pytest.skip("android_world makes songs with ffmpeg, which is not on the PATH")
    return found


def ask(tmp_path: Path, mode: str, seed: int, *tasks: str) -> Any:
    result = tmp_path / "result.json"
    paths = [
        str(HERE),
        str(ROOT),
        str(ROOT / "tests" / "support"),
        os.environ.get("PYTHONPATH", ""),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "RESULT": str(result),
    }
    done = subprocess.run(
        [python(), str(HERE / "androidworld_upstream.py"), mode, str(seed), *tasks],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(result.read_text())


def test_the_scripted_agent_solves_what_it_can_read(tmp_path: Path) -> None:
    found = ask(tmp_path, "solve", SEED, *solvable())
    wrong = {name: one for name, one in found.items() if one["score"] != 1.0}
    assert wrong == {}
    assert len(found) == 109


def solvable() -> list[str]:
    return [name for name in all_tasks() if name not in SEEN and not name.startswith(ABSENT)]


@cache
def all_tasks() -> tuple[str, ...]:
    probe = (
        "from android_world.registry import TaskRegistry as R; "
        "print(' '.join(sorted(R().get_registry('android_world'))))"
    )
    out = subprocess.run([python(), "-c", probe], capture_output=True, text=True, check=True)
    return tuple(out.stdout.split())


EARLY = {*VERIFY, "TurnOnWifiAndOpenApp"}
"""Rewarded before the last act. Upstream draws the app that ``TurnOnWifiAndOpenApp`` wants opened
from five; for this seed it is the settings, which are in front once the Wi-Fi is on."""
SIMILAR = {
    "ExpenseAddMultiple", "ExpenseAddMultipleFromMarkor", "ExpenseAddSingle", "MarkorCreateNote",
    "MarkorCreateNoteAndSms", "MarkorEditNote", "MarkorMergeNotes", "RecipeAddMultipleRecipes",
    "RecipeAddMultipleRecipesFromMarkor", "RecipeAddMultipleRecipesFromMarkor2",
    "RecipeAddSingleRecipe", "RetroCreatePlaylist", "SimpleCalendarAnyEventsOnDate",
    "SimpleCalendarEventOnDateAtTime", "SimpleCalendarEventsInNextWeek",
    "SimpleCalendarEventsInTimeRange", "SimpleCalendarEventsOnDate",
    "SimpleCalendarFirstEventAfterStartTime", "SimpleCalendarNextEvent", "SimpleSmsReply",
    "SimpleSmsReplyMostRecent", "SimpleSmsResend", "SimpleSmsSend",
    "SimpleSmsSendReceivedAddress", "SystemCopyToClipboard", "TasksCompletedTasksForDate",
    "TasksDueOnDate", "TasksHighPriorityTasks", "TasksHighPriorityTasksDueOnDate",
    "TasksIncompleteTasksOnDate",
}  # fmt: skip
"""Rewarded with one wrong letter: upstream takes texts that are equal to nine tenths for equal."""
UNCHECKED = {"OsmAndTrack"}
"""The last text of the script is the track's name, which upstream does not check."""


@pytest.mark.timeout(5400)
def test_sabotaged_scripts_get_the_verdicts_that_are_expected(tmp_path: Path) -> None:
    found = ask(tmp_path, "sabotage", SEED, *solvable())
    assert len(found) == 109

    def rewarded(what: str) -> set[str]:
        return {name for name, one in found.items() if one.get(what) == 1.0}

    assert rewarded("right") == set(found)
    assert rewarded("early") == EARLY
    assert rewarded("letter") == SIMILAR | UNCHECKED
    assert rewarded("text") == UNCHECKED


def test_an_app_that_is_not_in_front_must_be_opened_too(tmp_path: Path) -> None:
    found = ask(tmp_path, "sabotage", 2, "TurnOnWifiAndOpenApp")
    assert found["TurnOnWifiAndOpenApp"] == {"right": 1.0, "early": 0.5}


STANDARD = ("SystemWifiTurnOn", "ContactsAddContact", "ExpenseDeleteSingle", "MarkorEditNote")


def test_declaring_everything_done_at_once_scores_nothing(tmp_path: Path) -> None:
    names = [name for name in all_tasks() if not name.startswith(ABSENT)]
    found = ask(tmp_path, "idle", SEED, *names)
    # Upstream deletes the app's database and expects that the agent has opened the app.
    assert {name for name, one in found.items() if one["error"]} == {"RetroPlayingQueue"}
    assert {name for name, one in found.items() if one["score"] == 1.0} == VERIFY


def test_what_the_handset_has_not_is_an_error_and_never_a_score(tmp_path: Path) -> None:
    names = ("BrowserMaze", "BrowserDraw", "BrowserMultiply")
    found = ask(tmp_path, "idle", 30, *names)
    for one in found.values():
        assert one["score"] != one["score"], "NaN, as upstream marks what could not be run"
        assert "not exist" in one["error"] or "Is the app installed" in one["error"]


def test_without_the_forest_upstreams_own_controller_does(tmp_path: Path) -> None:
    found = ask(tmp_path, "uiautomator", 30, "SystemWifiTurnOn", "CameraTakePhoto")
    assert [one["score"] for one in found.values()] == [1.0, 1.0]


def test_suites_and_goals_are_upstreams(tmp_path: Path) -> None:
    found = ask(tmp_path, "seeds", 30, *STANDARD)
    assert found["ours"] == found["theirs"]
    assert len(found["goals"]) == 2 * len(STANDARD)
    assert found["our goals"] == found["goals"]


def test_the_contract_is_kept_on_upstreams_code(tmp_path: Path) -> None:
    report = ask(tmp_path, "contract", 1, "SystemWifiTurnOn", "ContactsAddContact")
    assert report["ok"], report["report"]


async def test_a_task_that_cannot_be_set_up_spoils_only_its_own_episode() -> None:
    env = AndroidWorldProcess(Settings(), python=python())
    with pytest.raises(EnvironmentFault, match="set up"):
        await env.reset(task="BrowserMaze", seed=3)
    assert (await env.reset(task="SystemWifiTurnOn", seed=3)).goal == "Turn wifi on."
    await env.close()


async def test_an_app_without_data_is_a_failure_and_equal_seeds_are_equal_goals() -> None:
    """Upstream deletes the app's database and expects that the agent has opened the app; and it
    names a folder after the present time."""
    env = AndroidWorldProcess(Settings(), python=python())
    await env.reset(task="RetroPlayingQueue", seed=3)
    step = await env.step(Action(action_type="status", goal_status="complete"))
    assert (step.reward, step.terminated) == (0.0, True)
    goals = [(await env.reset(task="MarkorCreateFolder", seed=seed)).goal for seed in (5, 6, 5)]
    assert goals[0] == goals[2] != goals[1]
    await env.close()


async def test_an_episode_in_a_process_of_its_own() -> None:
    env = AndroidWorldProcess(Settings(screenshots=True), python=python())
    screen = await env.reset(task="SystemWifiTurnOn", seed=3)
    assert screen.goal == "Turn wifi on."
    assert screen.png is not None
    opened = await env.step(Action(action_type="open_app", app_name="settings"))
    screen = opened.observation
    for label in ("network", "wifi"):
        index = next(one.index for one in screen.elements if one.label == label)
        screen = (await env.step(Action(action_type="click", index=index))).observation
    step = await env.step(Action(action_type="status", goal_status="complete"))
    assert (step.reward, step.terminated) == (1.0, True)
    assert env.name == "android_world (simulated)"
    await env.close()


async def test_the_documentations_suite_on_two_handsets() -> None:
    from graph_fakes import FixedModel, click

    from swarm_ui import CollabGraph, GraphPolicy

    text = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")
    (block,) = [b for b in text.split("```python\n") if "AndroidWorldDevices" in b]
    printed: dict[str, Any] = {}
    exec(block.split("```")[0], printed)

    def places(devices: Any, settings: Settings, **options: Any) -> AndroidWorldDevices:
        shorter = replace(settings, pause=0.0, budget=2)
        return AndroidWorldDevices(devices, shorter, python=python(), **options)

    printed["AndroidWorldDevices"] = places
    policy = GraphPolicy(CollabGraph.solo(FixedModel({None: click(0)})))
    episodes = await printed["play"](policy, ["handset", "handset"], printed["jobs"])
    assert [episode.success for episode in episodes] == [False] * 4
