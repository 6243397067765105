"""adb on a handset: what clients send, and what they expect back."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.environments.androidworld.handset import (
    APPS,
    Adb,
    AdbFailure,
    Handset,
    UnsupportedCommand,
)
from swarm_ui.environments.androidworld.handset.adb.shell_syntax import SimpleCommand, parse

EXPENSES = "/data/data/com.arduia.expense/databases/accounting.db"
SMS = "/data/data/com.android.providers.telephony/databases/mmssms.db"


@pytest.fixture
def handset() -> Handset:
    return Handset(APPS)


@pytest.fixture
def adb(handset: Handset) -> Adb:
    return Adb(handset)


def sh(adb: Adb, *words: str) -> str:
    return adb.run(["shell", *words]).decode()


def test_settings_of_android_are_the_phones_own(adb: Adb, handset: Handset) -> None:
    sh(adb, "svc", "wifi", "enable")
    assert handset.settings["wifi"] == "on"
    assert sh(adb, "settings", "get", "global", "wifi_on") == "1\n"
    sh(adb, "settings put global bluetooth_on 1")
    assert handset.settings["bluetooth"] == "on"
    sh(adb, "svc", "bluetooth", "disable")
    assert sh(adb, "settings get global bluetooth_on") == "0\n"
    sh(adb, "settings", "put", "system", "screen_brightness", "255")
    assert handset.settings["brightness"] == "255"
    assert "screen_brightness=255\n" in sh(adb, "settings list system")
    assert sh(adb, "settings get secure nothing") == "null\n"
    sh(adb, "settings put secure key value")
    assert sh(adb, "settings get secure key") == "value\n"
    assert sh(adb, "settings delete secure key") == "Deleted 1 rows\n"


def test_the_clock_is_set_and_told_in_the_forms_clients_use(adb: Adb, handset: Handset) -> None:
    assert sh(adb, "date") == "Sun Oct 15 15:34:00 UTC 2023\n"
    assert sh(adb, "date", "+%s") == f"{handset.now}\n"
    sh(adb, "date", "1231235924.30")
    assert sh(adb, "date") == "Tue Dec 31 23:59:30 UTC 2024\n"
    with pytest.raises(AdbFailure, match="bad date"):
        sh(adb, "date", "1399000023.00")


def test_the_activity_in_front_is_found_as_android_env_finds_it(adb: Adb) -> None:
    def front() -> str:
        found = re.compile(r".*\{(.*)\}").search(
            sh(adb, "am", "stack", "list", "|", "grep", "-E", "visible=true")
        )
        assert found is not None
        return found[1]

    assert front().startswith("com.google.android.apps.nexuslauncher/")
    sh(adb, "am", "start", "", "-W", "-n", "com.android.settings/.Settings")
    assert front() == "com.android.settings/com.android.settings.Settings"
    sh(adb, "am", "force-stop", "com.android.settings")
    assert front().startswith("com.google.android.apps.nexuslauncher/")
    sh(adb, "monkey", "-p", "net.gsantner.markor", "1")
    assert front().startswith("net.gsantner.markor/")
    (number,) = set(re.findall(r"id=(\d+)", sh(adb, "dumpsys activity recents")))
    sh(adb, "am", "stack", "remove", number)
    assert "nexuslauncher" in front()


def test_screen_and_rotation_are_told(adb: Adb) -> None:
    assert "Physical size: 1080x2400" in sh(adb, "wm size")
    assert "logicalFrame=[0, 0, 1080, 2400]" in sh(adb, "dumpsys input | grep logicalFrame")
    assert "mCurrentRotation=ROTATION_0" in sh(adb, "dumpsys window | grep mCurrentRotation")
    assert re.search(r"^\s+SurfaceOrientation:\s+0", sh(adb, "dumpsys", "input"), re.MULTILINE)
    assert sh(adb, "getprop ro.build.version.sdk") == "33\n"


def test_files_are_made_listed_and_removed(adb: Adb) -> None:
    sh(adb, "mkdir", "-p", "/sdcard/Notes/old")
    sh(adb, "echo", "'It'\"'\"'s done'", ">", "/sdcard/Notes/a b.txt".replace(" ", "\\ "))
    assert sh(adb, "cat", "/storage/emulated/0/Notes/a\\ b.txt") == "It's done\n"
    sh(adb, "echo x >> /sdcard/Notes/a\\ b.txt")
    assert sh(adb, "cat", "'/sdcard/Notes/a b.txt'") == "It's done\nx\n"
    assert sh(adb, "ls", "-1", "/sdcard/Notes") == "a b.txt\nold\n"
    found = sh(adb, "find", "/sdcard/Notes", "-type", "f", "-o", "-type", "d").splitlines()
    assert found == ["/sdcard/Notes", "/sdcard/Notes/a b.txt", "/sdcard/Notes/old"]
    long = sh(adb, "ls /sdcard/Notes -ll -au").splitlines()
    file = next(line for line in long if line.startswith("-"))
    fields = file.split(None, 8)
    assert fields[4] == "12"
    assert (fields[5], fields[6][:8], fields[8]) == ("2023-10-15", "15:34:00", "a b.txt")
    sh(adb, "cp", "-a", "/sdcard/Notes/.", "/sdcard/Copy/")
    assert sh(adb, "ls /sdcard/Copy") == "a b.txt\nold\n"
    sh(adb, "rm", "-r", "/sdcard/Notes/*")
    assert sh(adb, "ls /sdcard/Notes") == ""
    sh(adb, "find", "/sdcard/", "-mindepth", "1", "-type", "f", "-delete")
    assert sh(adb, "ls /sdcard/Copy") == "old\n"


@pytest.mark.parametrize(
    ("test", "path", "there"),
    [
        ("-d", "/sdcard/DCIM", True),
        ("-f", "/sdcard/DCIM", False),
        ("-e", "/sdcard/DCIM/", True),
        ("-f", EXPENSES, True),
        ("-d", "/sdcard/none", False),
    ],
)
def test_questions_about_files(adb: Adb, test: str, path: str, there: bool) -> None:
    script = f"""
    if [ {test} "{path}" ]; then
        echo "Yes"
    else
        echo "No"
    fi
    """
    assert sh(adb, script) == ("Yes\n" if there else "No\n")


def test_what_is_missing_fails_as_on_a_device(adb: Adb) -> None:
    for words, said in (
        ("cat /sdcard/none", "No such file"),
        ("ls /sdcard/none", "No such file"),
        ("rm /sdcard/none", "No such file"),
        ("echo x > /nowhere/at/all", "No such file"),
        ("am start -W -n com.example/.Main", "does not exist"),
        ("pm clear com.example", "not installed"),
        ("sqlite3 /sdcard/none.db 'SELECT 1'", "unable to open"),
    ):
        with pytest.raises(AdbFailure, match=said):
            sh(adb, words)


@pytest.mark.parametrize(
    "words",
    [
        "reboot",
        "settings put nowhere a b",
        "input keyevent KEYCODE_NOSUCH",
        "input draganddrop 1 2 3 4",
        "wm size 100x200",
        "settings put system user_rotation 1",
        "am task lock 3",
        "dumpsys battery",
        "content query --uri content://settings/system",
        "content query --uri content://sms --where x",
        "am start -a android.intent.action.DIAL -d tel:1",
        "am broadcast -a some.other.action",
        "ls -Z /sdcard",
        "echo $HOME",
        "cat < /sdcard/x",
        "echo `date`",
        "echo 'not closed",
        "if true; then echo x",
    ],
)
def test_what_is_not_known_is_said_and_never_ignored(adb: Adb, words: str) -> None:
    with pytest.raises(UnsupportedCommand, match="does not support 'adb shell"):
        sh(adb, words)


@pytest.mark.parametrize(
    "words",
    [
        "grep '(' /sdcard/x",
        "find /sdcard -mindepth x",
        "settings put system screen_brightness bright",
        f"sqlite3 {SMS} \"INSERT INTO sms (address, body, type) VALUES ('1', 'a', 3)\"",
        f"sqlite3 {EXPENSES} \"INSERT INTO expense (name, category) VALUES ('a', 0)\"",
        f"sqlite3 {EXPENSES} \"INSERT INTO expense (name, amount) VALUES ('a', 'much')\"",
    ],
)
def test_wrong_numbers_and_patterns_are_failures_of_the_command(
    adb: Adb, handset: Handset, words: str
) -> None:
    before = handset.tables, handset.settings
    with pytest.raises(AdbFailure):
        sh(adb, "echo (a > /sdcard/x; " + words if words.startswith("grep") else words)
    assert (handset.tables, handset.settings) == before


def test_a_value_that_sql_removes_is_gone_and_fields_without_a_column_stay(
    adb: Adb, handset: Handset
) -> None:
    key = handset.insert("todo", {"task": "a", "notes": "old", "own": "kept"})
    path = "/data/data/org.tasks/databases/database"
    sh(adb, f"sqlite3 {path} 'UPDATE tasks SET notes = NULL'")
    assert sh(adb, f"sqlite3 {path} 'SELECT notes IS NULL FROM tasks'") == "1\n"
    row = handset.tables["todo"][key]
    assert "notes" not in row and (row["task"], row["own"]) == ("a", "kept")


def test_an_unknown_task_of_the_stack_is_nobodys(adb: Adb, handset: Handset) -> None:
    sh(adb, "am start -n com.android.settings/com.android.settings.Settings")
    assert sh(adb, "am stack remove none") == "" and handset.front_app is not None
    sh(adb, "am start -n ca.zgrs.clipper/ca.zgrs.clipper.Main")
    sh(adb, "am broadcast -a clipper.set")
    assert 'data=""' in sh(adb, "am broadcast -a clipper.get")


def test_other_commands_of_the_program(adb: Adb, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedCommand, match="none can be installed"):
        adb.run(["install", "app.apk"])
    with pytest.raises(UnsupportedCommand, match="expected one of shell"):
        adb.run(["logcat"])
    with pytest.raises(UnsupportedCommand):
        adb.run([])
    assert sh(adb, "whoami") == "root\n"
    local, back = tmp_path / "a.bin", tmp_path / "b.bin"
    local.write_bytes(bytes(range(256)))
    adb.run(["push", str(local), "/sdcard/Download"])
    adb.run(["pull", "/storage/emulated/0/Download/a.bin", str(back)])
    assert back.read_bytes() == local.read_bytes()
    with pytest.raises(AdbFailure, match="failed to stat"):
        adb.run(["pull", "/sdcard/none", str(back)])


def test_messages_come_in_and_are_queried_newest_first(adb: Adb) -> None:
    assert sh(adb, "content query --uri content://sms/inbox") == "No result found.\n"
    adb.run(["emu", "sms", "send", "+15551234567", "Hello, World"])
    adb.run(["emu", "sms", "send", "+15557654321", "Second"])
    rows = sh(adb, "content query --uri content://sms/inbox").strip().split("\nRow:")
    assert "address=+15557654321" in rows[0]
    assert "body=Hello, World, service_center=NULL" in rows[1]
    assert sh(adb, "content query --uri content://sms/sent") == "No result found.\n"
    assert sh(adb, f'sqlite3 {SMS} "SELECT body FROM sms;"') == "Hello, World\nSecond\n"
    sh(adb, f'sqlite3 {SMS} "DELETE FROM sms;"')
    assert sh(adb, "content query --uri content://sms") == "No result found.\n"


def test_the_clipboard_app_answers_only_in_front(adb: Adb) -> None:
    assert "result=0" in sh(adb, "am broadcast -a clipper.get")
    sh(adb, "am start -W -n ca.zgrs.clipper/ca.zgrs.clipper.Main")
    sh(adb, "am", "broadcast", "-a", "clipper.set", "-e", "text", "It\\'s\\ here")
    assert sh(adb, "am broadcast -a clipper.get").endswith('result=-1, data="It\'s here"\n')


def test_rows_put_into_a_database_file_are_on_the_screen_and_back(
    adb: Adb, handset: Handset, tmp_path: Path
) -> None:
    local = tmp_path / "accounting.db"
    adb.run(["pull", EXPENSES, str(local)])
    with sqlite3.connect(local) as connection:
        connection.execute(
            "INSERT INTO expense (name, amount, category, note, created_date, modified_date) "
            "VALUES ('Taxi Fare', 1999, 7, 'Urgent', 1697000000000, 1697000000001)"
        )
    connection.close()
    adb.run(["push", str(local), EXPENSES])
    (row,) = handset.tables["expense"].values()
    assert (row["item"], row["amount"], row["category"]) == ("Taxi Fare", "19.99", "Transportation")
    handset.update("expense", 1, {"amount": "20.50"})
    assert sh(adb, f'sqlite3 {EXPENSES} "SELECT amount, note FROM expense"') == "2050|Urgent\n"
    sh(adb, "rm", "-r", "/data/data/com.arduia.expense/databases/*")
    assert not handset.tables["expense"]
    with pytest.raises(AdbFailure):
        adb.run(["pull", EXPENSES, str(local)])
    sh(adb, "am start -W -n com.arduia.expense/.ui.MainActivity")
    adb.run(["pull", EXPENSES, str(local)])  # the app made it again
    local.write_bytes(b"no database")
    with pytest.raises(AdbFailure, match=r"accounting\.db"):
        adb.run(["push", str(local), EXPENSES])


@given(st.text(st.characters(codec="ascii", exclude_characters="\x00"), min_size=1))
def test_any_text_survives_single_quotes(text: str) -> None:
    quoted = "'" + text.replace("'", "'\"'\"'") + "'"
    (((_, (command,)),),) = parse(f"echo {quoted}")
    assert isinstance(command, SimpleCommand)
    assert [word.text for word in command.words] == ["echo", text]


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1))
def test_any_word_typed_with_backslashes_arrives(text: str) -> None:
    adb = Adb(Handset(APPS))
    handset = adb.handset
    handset.launch("phone")
    handset.focus = "number"
    typed = "".join(f"\\{char}" for char in text)
    adb.run(["shell", "input", "text", typed])
    assert handset.draft["number"] == text.replace("%s", " ")
