"""Clock: the phone's alarms and timers, and a stopwatch."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.apps import ALARM
from swarm_ui.environments.phone.effects import Flip
from swarm_ui.environments.phone.state import Screen

APP = "clock"
TABS = ("Alarm", "Clock", "Timer", "Stopwatch")


def _build(handset: Handset, screen: Screen) -> Page:
    tab = screen.of or "Alarm"
    if screen.kind == "alarm":
        rows: list[Line] = [ui.field(handset, "Time", "time"), ui.field(handset, "Label", "label")]
        return Page(title="Add alarm", rows=[*rows, ui.button("OK", Call(_add_alarm))])
    body = {"Alarm": _alarms, "Clock": _now, "Timer": _timer, "Stopwatch": _stopwatch}[tab]
    tabs = tuple(ui.tab(name, name == tab, Call(partial(_show, tab=name))) for name in TABS)
    return Page(title=tab, rows=body(handset), bottom=[tabs])


def _show(handset: Handset, tab: str) -> None:
    handset.show((Screen(APP, "list", tab),))


def _alarms(handset: Handset) -> list[Line]:
    rows: list[Line] = [
        ui.switch(f"{row['time']} {row['label']}", row["active"] == "on", Flip(ALARM, k, "active"))
        for k, row in handset.tables["alarm"].items()
    ]
    return [*rows, ui.icon("Add alarm", ui.open_screen(APP, "alarm"))]


def _add_alarm(handset: Handset) -> str:
    time, label = handset.draft.get("time"), handset.draft.get("label", "")
    if not time:
        return "Set a time"
    handset.insert("alarm", {"time": time, "label": label, "active": "on"})
    handset.back()
    return ""


def _now(handset: Handset) -> list[Line]:
    return [ui.text_row(f"{handset.when():%H:%M}", f"{handset.when():%a, %b} {handset.when().day}")]


def _timer(handset: Handset) -> list[Line]:
    digits = handset.settings["timer"]
    padded = digits.rjust(6, "0")
    rows: list[Line] = [ui.text_row(f"{padded[:2]}h {padded[2:4]}m {padded[4:]}s")]
    for keys in (("1", "2", "3"), ("4", "5", "6"), ("7", "8", "9"), ("00", "0", "del")):
        rows.append(tuple(ui.button(key, Call(partial(_type, key=key))) for key in keys))
    if digits:
        rows.append(ui.icon("Start", Call(_start_timer)))
    timers = handset.tables["timer"].values()
    return rows + [ui.text_row(f"{row['minutes']} min {row['purpose']}") for row in timers]


def _type(handset: Handset, key: str) -> None:
    digits = handset.settings["timer"]
    handset.set("timer", digits[:-1] if key == "del" else (digits + key).lstrip("0")[:6])


def _start_timer(handset: Handset) -> None:
    padded = handset.settings["timer"].rjust(6, "0")
    minutes = int(padded[:2]) * 60 + int(padded[2:4]) + int(padded[4:]) / 60
    handset.insert("timer", {"minutes": f"{minutes:g}", "purpose": ""})
    handset.set("timer", "")


def _stopwatch(handset: Handset) -> list[Line]:
    since, total = handset.settings["stopwatch since"], _passed(handset)
    rows: list[Line] = [ui.text_row(f"{total // 60:02d} {total % 60:02d} 00")]
    if since:
        rows.append((ui.icon("Lap", Call(lambda h: None)), ui.icon("Pause", Call(_pause))))
    elif total:
        rows.append((ui.icon("Reset", Call(_reset)), ui.icon("Start", Call(_start))))
    else:
        rows.append(ui.icon("Start", Call(_start)))
    return rows


def _passed(handset: Handset) -> int:
    since = handset.settings["stopwatch since"]
    running = handset.now - int(since) if since else 0
    return int(handset.settings["stopwatch passed"]) + running


def _start(handset: Handset) -> None:
    handset.set("stopwatch since", str(handset.now))


def _pause(handset: Handset) -> None:
    handset.set("stopwatch passed", str(_passed(handset)))
    handset.set("stopwatch since", "")


def _reset(handset: Handset) -> None:
    handset.set("stopwatch passed", "0")


CLOCK = AppSpec(
    name=APP,
    package="com.google.android.deskclock",
    activity="com.android.deskclock.DeskClock",
    build=_build,
    tables=("alarm", "timer"),
    settings={"timer": "", "stopwatch since": "", "stopwatch passed": "0"},
)
