"""The handset: touches, keys, screens, accessibility, copies."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from datetime import UTC, datetime

import pytest
from handset_touches import place, seen, touch, write
from PIL import Image

from swarm_ui.environments.androidworld.handset import (
    APPS,
    Adb,
    AppSpec,
    Handset,
)
from swarm_ui.environments.androidworld.handset.apps.expense import ACCOUNTING
from swarm_ui.environments.androidworld.handset.errors import UnsupportedArguments
from swarm_ui.environments.androidworld.handset.file_system import SHARED, canonical
from swarm_ui.environments.androidworld.handset.handset import Call, Page
from swarm_ui.environments.androidworld.handset.screen.accessibility_tree import Node, windows
from swarm_ui.environments.androidworld.handset.screen.camera import Camera, picture
from swarm_ui.environments.androidworld.handset.screen.geometry import lay_out
from swarm_ui.environments.androidworld.handset.screen.touch import (
    long_press,
    press,
    swipe,
    tap,
    type_text,
)
from swarm_ui.environments.phone.state import Device, Screen, Widget
from swarm_ui.errors import ConfigError

MARKOR = f"{SHARED}/Documents/Markor"


@pytest.fixture
def handset() -> Handset:
    return Handset(APPS)


def nodes(root: Node) -> list[Node]:
    return [root, *(node for child in root.children for node in nodes(child))]


def test_a_touch_reaches_what_is_under_it(handset: Handset) -> None:
    touch(handset, "settings", "network", "wifi")
    assert handset.settings["wifi"] == "on"
    tap(handset, 1079.0, 2399.0)  # nothing is there
    tap(handset, 60.0, 180.0)  # the arrow in the title
    assert handset.stack == (Screen("settings"),)
    press(handset, "KEYCODE_HOME")
    assert handset.stack == ()


def test_brightness_by_choice_and_by_sliding(handset: Handset) -> None:
    touch(handset, "settings", "display", "brightness level", "100%")
    assert handset.settings["brightness"] == "255"
    x, y = place(handset, "Brightness")
    swipe(handset, (x, y), (0.0, y))
    assert handset.settings["brightness"] == "1"
    tap(handset, x, y)
    assert 120 < int(handset.settings["brightness"]) < 136


def test_keys_edit_the_field_in_focus(handset: Handset) -> None:
    touch(handset, "contacts", "Create contact")
    type_text(handset, "lost")
    assert "lost" not in handset.draft.values()
    write(handset, "First name", "Anna")
    press(handset, "67")
    press(handset, "KEYCODE_SPACE")
    assert handset.draft["first"] == "Ann "
    long_press(handset, *place(handset, "First name"))
    assert seen(handset)[1:4] == ["Cut", "Copy", "Paste"]
    touch(handset, "Copy")
    assert handset.clipboard == "Ann "
    touch(handset, "Last name")
    press(handset, "PASTE")
    press(handset, "PASTE")
    assert handset.draft["last"] == "Ann Ann "
    Adb(handset).run(
        ["shell", "input", "keycombination", "113", "29", "&&", "input", "keyevent", "67"]
    )
    assert handset.draft["last"] == ""
    long_press(handset, *place(handset, "First name"))
    touch(handset, "Cut")
    assert handset.draft["first"] == ""
    long_press(handset, *place(handset, "First name"))
    type_text(handset, "Bea")
    assert handset.draft["first"] == "Bea"
    with pytest.raises(UnsupportedArguments, match="is not supported; expected one of"):
        press(handset, "KEYCODE_CAMERA")


def test_a_form_is_as_it_was_after_a_choice_on_another_screen(handset: Handset) -> None:
    touch(handset, "contacts", "Create contact")
    write(handset, "First name", "Ann")
    touch(handset, "Mobile", "Work")
    assert handset.draft["first"] == "Ann"
    touch(handset, "Save")
    (row,) = handset.tables["contact"].values()
    assert (row["name"], row["label"]) == ("Ann", "Work")


def test_long_lists_scroll_and_keep_their_place(handset: Handset) -> None:
    for number in range(40):
        handset.insert(
            "contact", {"name": f"p{number:02d}", "phone": "", "email": "", "favorite": ""}
        )
    touch(handset, "contacts")
    first = seen(handset)
    assert "p00" in first
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
    for _ in range(9):
        swipe(handset, up[1], up[0])
    assert seen(handset) == first


def test_markor_notes_are_files(handset: Handset) -> None:
    touch(handset, "markor", "Create a new file or folder")
    write(handset, "Name", "plan")
    touch(handset, "OK")
    write(handset, "Text", "one")
    press(handset, "ENTER")
    type_text(handset, "two")
    press(handset, "BACK")
    assert handset.read("/sdcard/Documents/Markor/plan.md") == b"one\ntwo"
    long_press(handset, *place(handset, "plan.md"))
    touch(handset, "Rename")
    long_press(handset, *place(handset, "Name"))
    type_text(handset, "done.txt")
    touch(handset, "OK")
    assert handset.files.children(MARKOR) == [f"{MARKOR}/done.txt"]
    long_press(handset, *place(handset, "done.txt"))
    press(handset, "BACK")
    assert not handset.picked
    long_press(handset, *place(handset, "done.txt"))
    touch(handset, "Delete", "Cancel", "Delete", "OK")
    assert handset.files.children(MARKOR) == []


def test_an_open_note_whose_file_is_removed_does_not_come_back(handset: Handset) -> None:
    handset.write(f"{MARKOR}/a.md", b"x")
    touch(handset, "markor", "a.md")
    write(handset, "Text", "y")
    handset.delete(f"{MARKOR}/a.md")
    press(handset, "HOME")
    assert handset.files.children(MARKOR) == []


@pytest.mark.parametrize("kind", ["detail", "delete"])
def test_a_record_that_is_removed_behind_its_screen_does_not_stop_the_handset(
    handset: Handset, kind: str
) -> None:
    """As upstream's tasks do when they clear an app's database after an episode."""
    adb = Adb(handset)
    handset.launch("tasks")
    key = handset.insert("todo", {"task": "Water the plants"})
    handset.show((*handset.stack, Screen("tasks", kind, "", key)))
    assert any("Water the plants" in text for text in seen(handset))
    adb.run(["shell", "sqlite3 /data/data/org.tasks/databases/database 'DELETE FROM tasks'"])
    assert "No longer there" in seen(handset)
    adb.run(["shell", "input keyevent BACK"])
    assert "Nothing here" in seen(handset)


def test_a_file_that_is_removed_behind_its_screen_does_not_stop_the_handset(
    handset: Handset,
) -> None:
    adb = Adb(handset)
    adb.run(["shell", "echo text > /sdcard/Download/n.txt"])
    handset.launch("files")
    handset.show((*handset.stack, Screen("files", "view", f"{SHARED}/Download/n.txt")))
    assert seen(handset) == ["n.txt"]
    adb.run(["shell", "rm /sdcard/Download/n.txt"])
    assert "No longer there" in seen(handset)
    adb.run(["shell", "input keyevent HOME"])
    assert not handset.stack


def test_files_are_moved_and_nothing_is_overwritten(handset: Handset) -> None:
    for folder in ("Music", "Podcasts"):
        handset.write(f"/sdcard/{folder}/a.mp3", folder.encode())
    touch(handset, "files", "sdk_gphone_x86_64", "Music")
    long_press(handset, *place(handset, "a.mp3"))
    touch(handset, "Move", "Podcasts", "Move here")
    assert handset.toast == "It is there already"
    assert handset.read("/sdcard/Music/a.mp3") == b"Music"
    handset.delete("/sdcard/Podcasts/a.mp3")
    touch(handset, "Move here")
    assert handset.read("/sdcard/Podcasts/a.mp3") == b"Music"
    assert not handset.files.is_file(canonical("/sdcard/Music/a.mp3"))
    assert handset.stack[-1].of.endswith("/Music")


@pytest.mark.parametrize("amount", ["Infinity", "9" * 30, "1e400", "NaN", "0"])
def test_an_amount_that_the_database_cannot_hold_is_not_saved(
    handset: Handset, amount: str
) -> None:
    handset.launch("pro expense")
    touch(handset, "Add expense")
    write(handset, "Name", "Lunch")
    write(handset, "Amount", amount)
    touch(handset, "Save")
    assert "Amount is not right" in seen(handset)
    assert ACCOUNTING.run(handset, "SELECT count(*) FROM expense") == "0\n"


@pytest.mark.parametrize("name", [".", ".."])
def test_the_name_of_a_folder_itself_is_no_name_of_a_file(handset: Handset, name: str) -> None:
    handset.launch("markor")
    touch(handset, "Create a new file or folder", "No extension")
    write(handset, "Name", name)
    touch(handset, "OK")
    assert "Invalid name" in seen(handset)


def test_an_event_is_in_the_month_and_refused_if_it_ends_before_it_starts(
    handset: Handset,
) -> None:
    touch(handset, "simple calendar pro", "18", "New Event")
    write(handset, "Title", "Call")
    long_press(handset, *place(handset, "End time"))
    type_text(handset, "15:00")
    touch(handset, "Save")
    assert handset.toast == "The event ends before it starts"
    long_press(handset, *place(handset, "End time"))
    type_text(handset, "16:45")
    touch(handset, "Weekly", "Save")
    (row,) = handset.tables["event"].values()
    start = datetime(2023, 10, 18, 16, tzinfo=UTC).timestamp()
    assert (int(row["start"]), int(row["end"])) == (start, start + 45 * 60)
    assert (row["repeat_interval"], row["repeat_rule"]) == ("604800", "4")
    press(handset, "BACK")
    said = [one.widget.description for one in lay_out(handset).placed]
    for day, count in ((11, 0), (18, 1), (19, 0), (25, 1)):
        assert f"October {day} 2023, {count} events" in said


def test_a_stopwatch_counts_touches(handset: Handset) -> None:
    touch(handset, "clock", "Stopwatch", "Start")
    handset.now += 60
    touch(handset, "Pause")
    assert seen(handset)[0] == "01 01 00"
    touch(handset, "Reset")
    assert seen(handset)[0] == "00 00 00"
    Adb(handset).run(["shell", "pm", "clear", "com.google.android.deskclock"])
    assert handset.stack == ()


def test_what_services_see_is_what_is_shown(handset: Handset) -> None:
    touch(handset, "contacts", "Create contact")
    write(handset, "First name", "A<n>\n")
    app, status = windows(handset, lay_out(handset))
    fields = {node.hint: node for node in nodes(app) if node.kind == "EditText"}
    assert fields["First name"].text == "A<n>\n"
    assert fields["First name"].focused
    assert fields["Phone"].text == "Phone", "an empty field tells its hint"
    assert status.package == "com.android.systemui"
    Adb(handset).run(["shell", "uiautomator", "dump", "/sdcard/window_dump.xml"])
    root = ET.fromstring(handset.read("/sdcard/window_dump.xml"))
    dumped = [node.get("text") for node in root.iter("node")]
    assert dumped == [node.text for node in nodes(app)]
    bounds = [node.get("bounds") for node in root.iter("node")]
    assert bounds[0] == "[0,0][1080,2400]"
    for node in nodes(app):
        left, top, right, bottom = node.box
        assert 0 <= left < right <= 1080
        assert 0 <= top < bottom <= 2400


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_every_app_opens_is_drawn_and_can_be_cleared(handset: Handset, app: AppSpec) -> None:
    handset.launch(app.name)
    assert handset.component.startswith(app.package)
    geometry = lay_out(handset)
    assert geometry.placed
    assert picture(handset, geometry).size == (540, 1200)
    handset.clear(app)
    assert handset.stack == ()


def test_pixels_are_drawn_again_only_when_something_changed(handset: Handset) -> None:
    camera = Camera()
    home = camera.pixels(handset)
    assert len(home) == 2400 * 1080 * 3
    assert camera.pixels(handset) is home
    touch(handset, "settings")
    assert camera.pixels(handset) != home
    shown = io.BytesIO()
    picture(handset, lay_out(handset)).save(shown, "PNG")
    assert Image.open(shown).size == (540, 1200)


def test_a_copy_is_independent_and_equal_touches_lead_to_equal_devices(handset: Handset) -> None:
    touch(handset, "markor", "Create a new file or folder")
    copy = handset.clone()
    for one in (handset, copy):
        write(one, "Name", "same")
        touch(one, "OK")
    assert copy.files == handset.files
    assert [n for w in windows(copy, lay_out(copy)) for n in nodes(w)] == [
        n for w in windows(handset, lay_out(handset)) for n in nodes(w)
    ]
    touch(copy, "Save")
    press(copy, "HOME")
    copy.write("/sdcard/only here", b"")
    assert handset.entry("/sdcard/only here") is None
    assert handset.stack != copy.stack
    Adb(copy).run(["shell", "svc", "wifi", "enable"])
    assert handset.settings["wifi"] == "off"


def test_effects_of_a_handset_refuse_a_plain_phone() -> None:
    with pytest.raises(ConfigError, match="needs a Handset"):
        Call(lambda handset: None).apply(Device())


def test_two_apps_of_one_name_are_refused() -> None:
    def page(handset: Handset, screen: Screen) -> Page:
        return Page(title="x", rows=[Widget("text", "x")])

    app = AppSpec(name="x", package="com.x", activity=".Main", build=page)
    with pytest.raises(ConfigError, match="same name"):
        Handset([app, app])
