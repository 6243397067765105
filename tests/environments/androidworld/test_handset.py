"""The handset: what is touched on its screens is in the files and databases of its apps."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from swarm_ui.environments.androidworld.handset import APPS, Adb, AppSpec, Handset
from swarm_ui.environments.androidworld.handset.apps.messenger import PEOPLE
from swarm_ui.environments.androidworld.handset.screen import (
    lay_out,
    long_press,
    press,
    swipe,
    tap,
    type_text,
)
from swarm_ui.environments.phone.state import Screen

MARKOR = "/storage/emulated/0/Documents/Markor"
EXPENSES = "/data/data/com.arduia.expense/databases/accounting.db"
TASKS = "/data/data/org.tasks/databases/database"


@pytest.fixture
def handset() -> Handset:
    return Handset(APPS)


def place(handset: Handset, label: str) -> tuple[float, float]:
    """The middle of what is called so, in Android's pixels."""
    for one in lay_out(handset).placed:
        if label in (one.widget.text, one.widget.description, one.widget.value):
            left, top, right, bottom = one.pixels
            return (left + right) / 2, (top + bottom) / 2
    raise AssertionError(f"{label!r} is not on the screen: {seen(handset)}")


def seen(handset: Handset) -> list[str]:
    return [one.widget.text or one.widget.description for one in lay_out(handset).placed]


def touch(handset: Handset, *labels: str) -> None:
    for label in labels:
        tap(handset, *place(handset, label))


def write(handset: Handset, hint: str, text: str) -> None:
    touch(handset, hint)
    type_text(handset, text)


def rows(handset: Handset, database: str, sql: str) -> list[str]:
    return Adb(handset).run(["shell", f'sqlite3 {database} "{sql}"']).decode().splitlines()


def test_a_touch_reaches_what_is_under_it(handset: Handset) -> None:
    touch(handset, "settings", "network", "wifi")
    assert handset.settings["wifi"] == "on"
    tap(handset, 1079.0, 2399.0)  # nothing is there
    tap(handset, 60.0, 180.0)  # the arrow in the title
    assert handset.stack == (Screen("settings"),)
    touch(handset, "display", "brightness level", "100%")
    assert handset.settings["brightness"] == "255"
    press(handset, "KEYCODE_HOME")
    assert handset.stack == ()


def test_text_is_typed_selected_copied_and_replaced(handset: Handset) -> None:
    touch(handset, "contacts", "Create contact")
    type_text(handset, "lost")
    assert "lost" not in handset.draft.values()
    write(handset, "First name", "Anna")
    press(handset, "67")
    long_press(handset, *place(handset, "First name"))
    touch(handset, "Copy")
    assert handset.clipboard == "Ann"
    long_press(handset, *place(handset, "Last name"))
    touch(handset, "Paste")
    assert handset.draft["last"] == "Ann"
    select_and_delete = "input keycombination 113 29 && input keyevent 67"
    Adb(handset).run(["shell", select_and_delete])
    assert handset.draft["last"] == ""
    touch(handset, "Mobile", "Work")  # a choice on another screen
    assert handset.draft["first"] == "Ann", "the form is as it was"
    touch(handset, "Save")
    (row,) = PEOPLE.rows(handset, "people").values()
    assert (row["name"], row["label"]) == ("Ann", "Work")


def test_long_lists_scroll_and_keep_their_place(handset: Handset) -> None:
    for number in range(40):
        PEOPLE.insert(handset, "people", {"name": f"p{number:02d}"})
    touch(handset, "contacts")
    first = seen(handset)
    up = ((540.0, 1500.0), (540.0, 300.0))
    swipe(handset, *up)
    second = seen(handset)
    assert first[-2] == second[0], "a page begins with the last row of the one before"
    touch(handset, second[3])
    press(handset, "BACK")
    assert seen(handset) == second
    for _ in range(9):  # further swipes do nothing
        swipe(handset, *up)
    assert "p39" in seen(handset)


def test_markor_notes_are_files(handset: Handset) -> None:
    touch(handset, "markor", "Create a new file or folder")
    write(handset, "Name", "plan")
    touch(handset, "OK")
    write(handset, "Text", "one")
    press(handset, "ENTER")
    type_text(handset, "two")
    press(handset, "BACK")
    assert handset.files.read(f"{MARKOR}/plan.md") == b"one\ntwo"
    long_press(handset, *place(handset, "plan.md"))
    touch(handset, "Rename")
    long_press(handset, *place(handset, "Name"))
    type_text(handset, "done.txt")
    touch(handset, "OK")
    assert handset.files.children(MARKOR) == [f"{MARKOR}/done.txt"]
    touch(handset, "done.txt")
    handset.files.remove(f"{MARKOR}/done.txt")
    press(handset, "HOME")  # an open note whose file was removed does not come back
    assert handset.files.children(MARKOR) == []


def test_rows_put_into_a_database_file_are_on_the_screen_and_back(
    handset: Handset, tmp_path: Path
) -> None:
    adb, local = Adb(handset), tmp_path / "accounting.db"
    adb.run(["pull", EXPENSES, str(local)])
    with sqlite3.connect(local) as connection:
        connection.execute(
            "INSERT INTO expense (name, amount, category, note, created_date, modified_date) "
            "VALUES ('Taxi Fare', 1999, 7, 'Urgent', 1697000000000, 1697000000001)"
        )
    connection.close()
    adb.run(["push", str(local), EXPENSES])
    touch(handset, "pro expense")
    assert place(handset, "$19.99 · Transportation · Oct 11")
    assert rows(handset, EXPENSES, "SELECT amount, note FROM expense") == ["1999|Urgent"]
    touch(handset, "Add expense")
    write(handset, "Name", "Lunch")
    write(handset, "Amount", "1e400")
    touch(handset, "Save")
    assert "Amount is not right" in seen(handset)
    press(handset, "BACK")
    touch(handset, "Taxi Fare", "Delete", "Delete")
    assert rows(handset, EXPENSES, "SELECT count(*) FROM expense") == ["0"]


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_every_app_opens_and_can_be_cleared(handset: Handset, app: AppSpec) -> None:
    handset.launch(app.name)
    assert handset.component.startswith(app.package)
    assert lay_out(handset).placed
    handset.clear(app)
    assert handset.stack == ()


def test_touches_pixels_and_forest_under_android_env() -> None:
    pytest.importorskip("android_env", reason="needs the extra 'android'")
    import numpy as np

    from swarm_ui.environments.androidworld.handset.simulator import (
        accessibility_forest,
        android_env,
    )

    handsets = [Handset(APPS), Handset(APPS)]
    envs = [android_env(handset) for handset in handsets]
    home, _ = [env.reset().observation["pixels"].copy() for env in envs]
    assert home.shape == (2400, 1080, 3)
    x, y = place(handsets[0], "settings")
    for kind in (0, 1):  # down, and up again
        step = envs[0].step(
            {
                "action_type": np.array(kind, dtype=np.int32),
                "touch_position": np.array([x / 1080, y / 2400], dtype=np.float32),
            }
        )
    assert [handset.stack for handset in handsets] == [(Screen("settings"),), ()]
    assert (step.observation["pixels"] != home).any()
    (window,) = accessibility_forest(handsets[0]).windows
    assert window.title == "settings"
    assert "network" in [node.text for node in window.tree.nodes]
    for env in envs:
        env.close()
