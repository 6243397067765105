"""Scripts for android_world's calendar and tasks apps: events and questions."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import pairwise

from androidworld_player import Player, Script, Scripts, Stuck

Match = re.Match[str]
TODAY = date(2023, 10, 15)
CALENDAR = "simple calendar pro"


def day_of(words: str, *, past: bool = False) -> date:
    """The day that a question means; android_world's emulator is at 15 October 2023."""
    words = words.strip()
    near = {"today": 0, "tomorrow": 1, "yesterday": -1}
    if words in near:
        return TODAY + timedelta(days=near[words])
    ahead, behind = list(range(1, 32)), list(range(-30, 1))
    for away in (*behind, *ahead) if past else (*ahead, *behind):
        day = TODAY + timedelta(days=away)
        said = [f"{day:%B} {day.day:02d}", f"{day:%B} {day.day}"]
        said += [f"{one} {day.year}" for one in said]
        if 0 < away <= 7:
            said += [f"{day:%A}", f"this {day:%A}"]
        if 7 < away <= 14:
            said.append(f"the {day:%A} after next")
        if -7 <= away < 0:
            said.append(f"{day:%A}")
        if words in said:
            return day
    raise Stuck(f"which day is {words!r}?")


def minutes(words: str) -> int:
    """``10:30``, ``3pm`` or ``10:30am`` in minutes."""
    found = re.fullmatch(r"(\d+)(?::(\d\d))?(am|pm)?", words)
    if found is None:
        raise Stuck(f"when is {words!r}?")
    hour = int(found[1]) % 12 + 12 * (found[3] == "pm") if found[3] else int(found[1])
    return 60 * hour + int(found[2] or 0)


def show_day(me: Player, day: date) -> Script:
    """Open a day of the month view."""
    yield from me.open(CALENDAR)
    if (day.year, day.month) != (TODAY.year, TODAY.month):
        yield from me.tap("Next month" if day > TODAY else "Previous month")
    tile = f"{day:%B} {day.day} {day.year}, "
    found = [one for one in me.screen if one.description.startswith(tile)]
    yield {"action_type": "click", "index": found[0].index}


def events(me: Player) -> list[tuple[str, str]]:
    """Title and times of the events in the list."""
    rows = [one.text for one in me.screen if one.kind == "TextView" and one.top > 240]
    return [
        (title, when) for title, when in pairwise(rows) if re.search(r"\d\d:\d\d - \d\d:\d\d", when)
    ]


def listed(me: Player) -> Script:
    """All events of the list, in ``me.notes``."""
    found: list[tuple[str, str]] = []

    def look() -> None:
        # A page begins with the last row of the one before.
        now = events(me)
        found.extend(now[1:] if found and now and found[-1] == now[0] else now)

    yield from me.pages(look)
    me.notes = found


def add_event(me: Player, found: Match) -> Script:
    parts = found.groupdict()
    day = date.fromisoformat(whole(parts["date"])) if parts.get("date") else day_after(found)
    start, lasts = 60 * int(parts["hour"]), int(parts["minutes"])
    end = start + lasts
    over = day + timedelta(days=end // 1440)
    yield from show_day(me, day)
    yield from me.tap("New Event")
    yield from me.write("Title", parts["title"])
    yield from me.write("Description", parts["description"])
    yield from me.write("Start time", clock(start), clear=True)
    if over != day:
        yield from me.write("End date", over.isoformat(), clear=True)
    yield from me.write("End time", clock(end), clear=True)
    if parts.get("rule"):
        yield from me.tap(parts["rule"].capitalize())
    yield from me.tap("Save")


def clock(minute: int) -> str:
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"


def day_after(found: Match) -> date:
    words = found.groupdict()["words"]
    if words == "in two weeks from today":
        return TODAY + timedelta(days=14)
    return day_of(words.removeprefix("for "))


def whole(text: str) -> str:
    year, month, day = text.split("-")
    return f"{year}-{int(month):02d}-{int(day):02d}"


def delete_events(me: Player, found: Match) -> Script:
    words = found[1]
    day = date.fromisoformat(whole(words)) if words[0].isdigit() else day_of(words)
    yield from show_day(me, day)
    while rows := events(me):
        yield from delete_event(me, rows[0][0])


def delete_one(me: Player, found: Match) -> Script:
    yield from show_day(me, date.fromisoformat(whole(found[1])))
    hour = f"{int(found[2]):02d}:00"
    at = next(k for k, (title, when) in enumerate(events(me))
              if title == found[3] and when.startswith(hour))  # fmt: skip
    rows = [one for one in me.screen if one.text == found[3] and one.kind == "TextView"]
    same = sum(title == found[3] for title, _ in events(me)[:at])
    yield {"action_type": "click", "index": rows[same].index}
    yield from me.tap("Delete")
    yield from me.tap("Yes")


def delete_event(me: Player, title: str) -> Script:
    yield from me.tap(title)
    yield from me.tap("Delete")
    yield from me.tap("Yes")


def say(me: Player, titles: list[str]) -> Script:
    yield from me.answer(", ".join(titles))


def starts(when: str) -> int:
    found = re.search(r"(\d\d):(\d\d) -", when)
    assert found is not None
    return 60 * int(found[1]) + int(found[2])


def on_day(me: Player, found: Match) -> Script:
    yield from show_day(me, day_of(found[1]))
    yield from listed(me)
    yield from say(me, [title for title, _ in me.notes])


def at_time(me: Player, found: Match) -> Script:
    yield from show_day(me, day_of(found[1]))
    yield from listed(me)
    wanted = minutes(found[2])
    yield from say(me, [title for title, when in me.notes if starts(when) == wanted])


def in_range(me: Player, found: Match) -> Script:
    yield from show_day(me, day_of(found[3]))
    yield from listed(me)
    first, last = minutes(found[1]), minutes(found[2])
    yield from say(me, [title for title, when in me.notes if first <= starts(when) <= last])


def first_after(me: Player, found: Match) -> Script:
    yield from show_day(me, day_of(found[2]))
    yield from listed(me)
    later = [title for title, when in me.notes if starts(when) >= minutes(found[1])]
    yield from say(me, later[:1])


def agenda(me: Player) -> Script:
    yield from me.open(CALENDAR)
    yield from me.tap("List")


def next_event(me: Player, found: Match) -> Script:
    yield from agenda(me)
    first = events(me)[0]
    yield from say(me, [title for title, when in events(me) if when[:15] == first[1][:15]
                        and starts(when) == starts(first[1])])  # fmt: skip


def next_week(me: Player, found: Match) -> Script:
    yield from agenda(me)
    yield from listed(me)
    days = {f"{TODAY + timedelta(days=k)}" for k in range(1, 8)}
    yield from say(me, [title for title, when in me.notes if when[4:14] in days])


def meeting(me: Player, found: Match) -> Script:
    yield from agenda(me)
    yield from listed(me)
    when = next(when for title, when in me.notes if found[1] in title)
    day = date.fromisoformat(when[4:14])
    yield from me.answer(f"{day:%B} {day.day} {day.year} {clock(starts(when))}")


def place(me: Player, found: Match) -> Script:
    yield from agenda(me)
    yield from me.reach(found[1])
    yield from me.tap(found[1])
    yield from me.answer(me.beside("Location"))


def tasks(me: Player) -> Script:
    """All tasks, as title and what the list says of it, in ``me.notes``."""
    yield from me.open("tasks")
    found: list[tuple[str, str]] = []

    def look() -> None:
        rows = [one.text for one in me.screen if one.kind == "TextView" and one.top > 380]
        now = [(t, s) for t, s in pairwise(rows) if s.startswith("due ")]
        found.extend(now[1:] if found and now and found[-1] == now[0] else now)

    yield from me.pages(look)
    me.notes = found


def due(said: str) -> str:
    """``2023-10-20`` of ``due Fri 2023-10-20 …``; empty without a date."""
    found = re.match(r"due \w+ (\d{4}-\d\d-\d\d)", said)
    return found[1] if found else ""


def due_on(me: Player, found: Match) -> Script:
    yield from tasks(me)
    wanted = day_of(found[1]).isoformat()
    yield from say(me, [title for title, said in me.notes if due(said) == wanted])


def high(me: Player, found: Match) -> Script:
    yield from tasks(me)
    yield from say(me, [title for title, said in me.notes if "high priority" in said])


def high_on(me: Player, found: Match) -> Script:
    yield from tasks(me)
    wanted = day_of(found[1]).isoformat()
    yield from say(
        me, [t for t, said in me.notes if "high priority" in said and due(said) == wanted]
    )


def count_next_week(me: Player, found: Match) -> Script:
    yield from tasks(me)
    days = {f"{TODAY + timedelta(days=k)}" for k in range(1, 8)}
    yield from me.answer(str(sum(due(said) in days for _, said in me.notes)))


def completed(me: Player, found: Match) -> Script:
    yield from tasks(me)
    wanted = day_of(found[1], past=True).isoformat()
    yield from say(me, [t for t, said in me.notes if due(said) == wanted and " done " in said])


def incomplete(me: Player, found: Match) -> Script:
    yield from tasks(me)
    last = day_of(found[1]).isoformat()
    yield from say(
        me, [t for t, said in me.notes if "" < due(said) <= last and " done " not in said]
    )


_NEW = (
    r" at (?P<hour>\d+)h with the title '(?P<title>.+)' and the description "
    r"'(?P<description>.+)'\. The event should last for (?P<minutes>\d+) mins\."
)
_IN = r"In Simple Calendar Pro, "
_END = r" in Simple Calendar Pro\?.*"
ANSWERS: Scripts = [
    (_IN + r"create a calendar event on (?P<date>[\d-]+)" + _NEW, add_event),
    (
        _IN + r"create a calendar event (?P<words>in two weeks from today|for .+?)" + _NEW,
        add_event,
    ),
    (
        _IN + r"create a recurring calendar event titled '(?P<title>.+)' starting on "
        r"(?P<date>[\d-]+) at (?P<hour>\d+)h\. The event recurs (?P<rule>\w+), forever, and lasts "
        r"for (?P<minutes>\d+) minutes each occurrence\. The event description should be "
        r"'(?P<description>.+)'\.",
        add_event,
    ),
    (_IN + r"delete all the calendar events on ([\d-]+)", delete_events),
    (_IN + r"delete the calendar event on ([\d-]+) at (\d+)h with the title '(.+)'", delete_one),
    (_IN + r"delete all events scheduled for (this .+)\.", delete_events),
    (r"What is my next upcoming event" + _END, next_event),
    (r"What events do I have in the next week" + _END, next_week),
    (r"What events do I have (.+)" + _END, on_day),
    (r"What is on my schedule for (.+) at (\S+)" + _END, at_time),
    (r"Do I have any events between (\S+) and (\S+) (.+)" + _END, in_range),
    (r"Do I have any events (.+)" + _END, on_day),
    (r"When is my next meeting with (.+)" + _END, meeting),
    (r"What is the location of my (.+) event" + _END, place),
    (r"What is my first event after (\S+) (.+)" + _END, first_after),
    (r"What tasks do I have due (.+) in Tasks app\?.*", due_on),
    (r"What are my high priority tasks in Tasks app\?.*", high),
    (r"Which tasks with high priority are due (.+) in the Tasks app\?.*", high_on),
    (r"How many tasks do I have due next week in Tasks app\?.*", count_next_week),
    (r"Which tasks have I completed for (.+) in Tasks app\?.*", completed),
    (r"What incomplete tasks do I have still have to do by (.+) in Tasks app\?.*", incomplete),
]
