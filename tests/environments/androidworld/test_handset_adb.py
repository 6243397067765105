"""adb on a handset: what clients send, and what they expect back."""

from __future__ import annotations

import re
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
    sh(adb, "settings", "put", "system", "screen_brightness", "300")
    assert sh(adb, "settings get system screen_brightness") == "255\n"
    assert sh(adb, "settings get secure nothing") == "null\n"
    sh(adb, "settings put secure key value")
    assert sh(adb, "settings get secure key") == "value\n"


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
    (number,) = set(re.findall(r"id=(\d+)", sh(adb, "dumpsys activity recents")))
    sh(adb, "am", "stack", "remove", number)
    assert "nexuslauncher" in front()
    assert "logicalFrame=[0, 0, 1080, 2400]" in sh(adb, "dumpsys input | grep logicalFrame")


def test_files_are_made_listed_and_removed(adb: Adb) -> None:
    sh(adb, "mkdir", "-p", "/sdcard/Notes/old")
    sh(adb, "echo", "'It'\"'\"'s done'", ">", "/sdcard/Notes/a b.txt".replace(" ", "\\ "))
    assert sh(adb, "cat", "/storage/emulated/0/Notes/a\\ b.txt") == "It's done\n"
    assert sh(adb, "ls", "-1", "/sdcard/Notes") == "a b.txt\nold\n"
    found = sh(adb, "find", "/sdcard/Notes", "-type", "f", "-o", "-type", "d").splitlines()
    assert found == ["/sdcard/Notes", "/sdcard/Notes/a b.txt", "/sdcard/Notes/old"]
    long = sh(adb, "ls /sdcard/Notes -ll -au").splitlines()
    fields = next(line for line in long if line.startswith("-")).split(None, 8)
    assert (fields[4], fields[5], fields[8]) == ("10", "2023-10-15", "a b.txt")
    sh(adb, "find", "/sdcard/", "-mindepth", "1", "-type", "f", "-delete")
    assert sh(adb, "ls /sdcard/Notes") == "old\n"
    sh(adb, "rm", "-r", "/sdcard/Notes/*")
    assert sh(adb, "ls /sdcard/Notes") == ""
    for test, path, there in (("-d", "/sdcard/DCIM", True), ("-f", "/sdcard/DCIM", False),
                              ("-f", EXPENSES, True), ("-d", "/sdcard/none", False)):  # fmt: skip
        script = f'\n if [ {test} "{path}" ]; then\n echo "Yes"\n else\n echo "No"\n fi\n '
        assert sh(adb, script) == ("Yes\n" if there else "No\n")


@pytest.mark.parametrize(
    "words",
    [
        "cat /sdcard/none",
        "ls /sdcard/none",
        "rm /sdcard/none",
        "echo x > /nowhere/at/all",
        "am start -W -n com.example/.Main",
        "pm clear com.example",
        "date 1399000023.00",
        "sqlite3 /sdcard/none.db 'SELECT 1'",
        f"sqlite3 {SMS} 'SELECT no_column FROM sms'",
    ],
)
def test_what_is_wrong_fails_as_on_a_device(adb: Adb, handset: Handset, words: str) -> None:
    before = handset.settings, dict(handset.files.entries)
    with pytest.raises(AdbFailure) as failure:
        sh(adb, words)
    assert not isinstance(failure.value, UnsupportedCommand)
    assert (handset.settings, handset.files.entries) == before


@pytest.mark.parametrize(
    "words",
    [
        "reboot",
        "settings put nowhere a b",
        "settings put system user_rotation 1",
        "input keyevent KEYCODE_NOSUCH",
        "dumpsys battery",
        "content query --uri content://settings/system",
        "am start -a android.intent.action.DIAL -d tel:1",
        "am broadcast -a some.other.action",
        "ls -Z /sdcard",
        "echo $HOME",
        "input tap a b",
        "find /sdcard -mindepth x",
        "cat < /sdcard/x",
        "echo 'not closed",
        "if whoami; then echo x",
    ],
)
def test_what_is_not_known_is_said_and_never_ignored(adb: Adb, words: str) -> None:
    with pytest.raises(UnsupportedCommand):
        sh(adb, words)


def test_files_are_pushed_and_pulled(adb: Adb, tmp_path: Path) -> None:
    local, back = tmp_path / "a.bin", tmp_path / "b.bin"
    local.write_bytes(bytes(range(256)))
    adb.run(["push", str(local), "/sdcard/Download"])
    adb.run(["pull", "/storage/emulated/0/Download/a.bin", str(back)])
    assert back.read_bytes() == local.read_bytes()
    for args in (["pull", "/sdcard/none", str(back)], ["logcat"]):
        with pytest.raises(AdbFailure):
            adb.run(args)


def test_messages_come_in_and_are_queried_newest_first(adb: Adb) -> None:
    assert sh(adb, "content query --uri content://sms/inbox") == "No result found.\n"
    adb.run(["emu", "sms", "send", "+15551234567", "Hello, World"])
    adb.run(["emu", "sms", "send", "+15557654321", "Second"])
    rows = sh(adb, "content query --uri content://sms/inbox").strip().split("\nRow:")
    assert "address=+15557654321" in rows[0]
    assert "body=Hello, World, service_center=NULL" in rows[1]
    sh(adb, f'sqlite3 {SMS} "DELETE FROM sms;"')
    assert sh(adb, "content query --uri content://sms") == "No result found.\n"


@given(st.text(st.characters(codec="ascii", exclude_characters="\x00"), min_size=1))
def test_any_text_survives_single_quotes(text: str) -> None:
    quoted = "'" + text.replace("'", "'\"'\"'") + "'"
    assert sh(Adb(Handset(APPS)), f"echo {quoted}") == f"{text}\n"
