"""Simple Calendar: screens for a month, a day and an event. Times are in UTC, as upstream's."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, timedelta

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.file_system import Database, Row, table
from swarm_ui.environments.androidworld.handset.handset import (
    AppSpec,
    Call,
    Control,
    Handset,
    Line,
    Page,
)
from swarm_ui.environments.phone.state import Screen, Widget

APP = "simple calendar pro"
DAY, WEEK = 86_400, 604_800
REPEATS = {"No repetition": 0, "Daily": DAY, "Weekly": WEEK}
EVENTS = Database(
    "/data/data/com.simplemobiletools.calendar.pro/databases/events.db",
    table("events", "id", text="title location description attendees import_id",
          integer="start_ts end_ts reminder_1_type reminder_2_type reminder_3_type repeat_interval "
          "repeat_rule repeat_limit flags parent_id last_updated availability color type",
          other="reminder_1_minutes INTEGER DEFAULT -1, reminder_2_minutes INTEGER DEFAULT -1, "
          "reminder_3_minutes INTEGER DEFAULT -1, repetition_exceptions TEXT DEFAULT '[]', "
          "time_zone TEXT DEFAULT 'UTC', event_type INTEGER DEFAULT 1, "
          "source TEXT DEFAULT 'simple-calendar'"),
)  # fmt: skip


def _events(handset: Handset) -> dict[int, Row]:
    return EVENTS.rows(handset, "events")


def _build(handset: Handset, screen: Screen) -> Page:
    match screen.kind:
        case "day":
            day = date.fromisoformat(screen.of)
            rows = ui.rows_or("No events", [_line(k, row) for k, row in _on(handset, day)])
            title = f"{day:%A}, {day:%B} {day.day} {day.year}"
            return Page(title=title, rows=rows, bottom=[_new_event(day)])
        case "detail":
            return _event(_events(handset)[screen.row], screen.row)
        case "delete":
            yes = ui.delete_record(EVENTS, "events", screen.row, "Event deleted")
            title = _events(handset)[screen.row]["title"]
            return ui.delete_page(title, ui.answers(yes, "Yes", "No"))
        case "form":
            return _form(handset)
        case "agenda":  # all events that have not ended, the earliest first
            ahead = [pair for pair in _events(handset).items() if pair[1]["end_ts"] >= handset.now]
            ahead.sort(key=lambda pair: (pair[1]["start_ts"], pair[0]))
            rows = ui.rows_or("No events", [_line(k, row, dated=True) for k, row in ahead])
            return Page(title="Event list", rows=rows)
    shown = date.fromisoformat(screen.of) if screen.of else handset.when().date()
    return _month(handset, shown.replace(day=1))


def _month(handset: Handset, first: date) -> Page:
    """A table of the days. The description of a day gives the number of its events."""
    weeks: list[Line] = [tuple(map(ui.heading, "SMTWTFS"))]
    for week in calendar.Calendar(6).monthdatescalendar(first.year, first.month):
        weeks.append(tuple(_tile(handset, day, day.month == first.month) for day in week))
    turn = [
        ui.icon(f"{way} month", Call(Handset.switch, "list", f"{first + timedelta(days)}"))
        for way, days in (("Previous", -1), ("Next", 31))
    ]
    top = (*turn, ui.button("List", ui.go("agenda")))
    add = _new_event(handset.when().date())
    return Page(title=f"{first:%B %Y}", rows=weeks, top=[top], bottom=[add])


def _tile(handset: Handset, day: date, inside: bool) -> Widget:
    events = f"{day:%B} {day.day} {day.year}, {len(_on(handset, day))} events" if inside else ""
    show = ui.go("day", day.isoformat())
    return Control("cell", str(day.day), effect=show, description=events)


def _on(handset: Handset, day: date) -> list[tuple[int, Row]]:
    """Events of a day by time, repeated events included."""
    found = [pair for pair in _events(handset).items() if _happens(pair[1], day)]
    return sorted(found, key=lambda pair: (pair[1]["start_ts"] % DAY, pair[0]))


def _happens(row: Row, day: date) -> bool:
    passed = (day - _moment(row["start_ts"]).date()).days
    interval = row["repeat_interval"]
    return passed == 0 or (passed > 0 and interval in (DAY, WEEK) and passed * DAY % interval == 0)


def _moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _line(identity: int, row: Row, *, dated: bool = False) -> Widget:
    start, end = _moment(row["start_ts"]), _moment(row["end_ts"])
    span = f"{start:%H:%M} - {end:%H:%M}"
    parts = [f"{start:%a %Y-%m-%d}" if dated else "", span, row["location"]]
    return ui.item(row["title"], " ".join(filter(None, parts)), ui.go("detail", row=identity))


def _event(row: Row, identity: int) -> Page:
    interval = row["repeat_interval"]
    said = {
        "Location": row["location"] or "",
        "Description": row["description"] or "",
        "Start": f"{_moment(row['start_ts']):%a %Y-%m-%d %H:%M}",
        "End": f"{_moment(row['end_ts']):%a %Y-%m-%d %H:%M}",
        "Repetition": next((k for k, v in REPEATS.items() if v == interval), "Other"),
    }
    rows = [ui.text_row(row["title"]), *(ui.text_row(*pair) for pair in said.items())]
    delete = ui.button("Delete", ui.go("delete", row=identity))
    return Page(title="Event", rows=rows, bottom=[delete])


def _new_event(day: date) -> Widget:
    days = dict.fromkeys(("start day", "end day"), day.isoformat())
    return ui.icon("New Event", ui.go("form", draft={**days, "start": "16:00", "end": "17:00"}))


def _form(handset: Handset) -> Page:
    rows: list[Line] = [
        ui.field(handset, "Title", "title"),
        ui.field(handset, "Location", "location"),
        ui.field(handset, "Description", "description"),
        (ui.field(handset, "Start date", "start day"), ui.field(handset, "Start time", "start")),
        (ui.field(handset, "End date", "end day"), ui.field(handset, "End time", "end")),
        *ui.options(handset, "repeat", REPEATS, "No repetition"),
    ]
    return Page(title="New Event", rows=rows, bottom=[ui.icon("Save", _save)])


def _save(handset: Handset) -> str:
    draft = handset.draft
    try:
        start, end = (
            datetime.fromisoformat(f"{draft[f'{k} day'].strip()} {draft[k].strip()}Z")
            for k in ("start", "end")
        )
    except ValueError:
        return "Dates are written 2023-10-15, times 16:00"
    if not draft.get("title", "").strip():
        return "Title is empty"
    if end < start:
        return "The event ends before it starts"
    interval = REPEATS[draft.get("repeat", "No repetition")]
    record = {
        **{key: draft.get(key, "").strip() for key in ("title", "location", "description")},
        "start_ts": int(start.timestamp()),
        "end_ts": int(end.timestamp()),
        "repeat_interval": interval,
        # Weekly: bit 0 for Mondays, bit 6 for Sundays.
        "repeat_rule": 1 << start.weekday() if interval == WEEK else 0,
        "last_updated": handset.now * 1000,
    }
    EVENTS.insert(handset, "events", record)
    handset.back()
    return "Event saved"


CALENDAR = AppSpec(
    APP, "com.simplemobiletools.calendar.pro",
    "com.simplemobiletools.calendar.pro.activities.MainActivity", _build,
    databases=(EVENTS,),
)  # fmt: skip
