"""Scripts for android_world's notes, activities, playlists and maps."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from itertools import combinations, pairwise

from androidworld_answers import TODAY, day_of
from androidworld_player import Player, Script, Scripts, Stuck

Match = re.Match[str]
MILE = 1609.34


def seek(me: Player, label: str) -> Script:
    """Scroll down, or else up, until ``label`` is seen."""
    try:
        yield from me.reach(label)
    except Stuck:
        while not me.has(label):
            yield from me.scroll("up")


def open_note(me: Player, title: str) -> Script:
    yield from me.open("joplin")
    yield from me.tap("All notes")
    yield from me.write("Search", title)
    yield from me.tap(title, last=True)  # the first one is the search field


def ingredient(me: Player, found: Match) -> Script:
    yield from open_note(me, found[2])
    lines = me.beside("Body").split("\n")
    (line,) = [one for one in lines if one.startswith("- ") and one.endswith(f" {found[1]}")]
    yield from me.answer(line.removeprefix("- ").removesuffix(f" {found[1]}"))


def attendees(me: Player, found: Match) -> Script:
    yield from open_note(me, found[1])
    numbers = re.findall(r"\d+", me.beside("Body"))
    yield from me.answer(numbers[-1])


def is_todo(me: Player, found: Match) -> Script:
    yield from open_note(me, found[1])
    yield from me.answer(str(me.beside("Kind").startswith("To-do")))


def count_todos(me: Player, found: Match) -> Script:
    yield from me.open("joplin")
    yield from seek(me, found[1])
    yield from me.tap(found[1])
    rows: list[tuple[str, str]] = []
    yield from me.pages(lambda: gather(me, rows, r"To-do.*|Note"))
    yield from me.answer(str(sum(kind.startswith("To-do") for _, kind in rows)))


def gather(me: Player, rows: list[tuple[str, str]], said: str) -> None:
    """Titles and what the list says of them. A page begins with the last row of the one before."""
    texts = [one.text for one in me.screen if one.kind == "TextView" and one.top > 250]
    now = [pair for pair in pairwise(texts) if re.fullmatch(said, pair[1])]
    rows.extend(now[1:] if rows and now and rows[-1] == now[0] else now)


def activities(me: Player, keep: Callable[[str, date], bool]) -> Script:
    """Kind, miles and minutes of the activities to ``keep``, in ``me.notes``."""
    yield from me.open("opentracks")
    rows: list[tuple[str, str]] = []
    yield from me.pages(lambda: gather(me, rows, r".+ · .+ · .+ mi · .+"))
    me.notes = []
    for _, said in rows:
        kind, when, _, _ = said.split(" · ")
        if keep(kind, date.fromisoformat(when.split()[1])):
            me.notes.append((kind, said))


def metres(said: str) -> int:
    return round(float(said.split(" · ")[2].removesuffix(" mi")) * MILE)


def minutes(said: str) -> int:
    hours, minute, seconds = (int(part) for part in said.split(" · ")[3].split(":"))
    return 60 * hours + minute + round(seconds / 60)


def this_week(day: date) -> bool:
    return TODAY - timedelta(days=TODAY.weekday()) <= day <= TODAY


def in_week(me: Player, kind: str) -> Script:
    yield from activities(me, lambda one, day: one == kind and this_week(day))


def kinds_on(me: Player, found: Match) -> Script:
    wanted = day_of(found[1], past=True)
    yield from activities(me, lambda kind, day: day == wanted)
    yield from me.answer(", ".join(kind for kind, _ in me.notes))


def count_week(me: Player, found: Match) -> Script:
    yield from in_week(me, found[1])
    yield from me.answer(str(len(me.notes)))


def duration(me: Player, found: Match) -> Script:
    wanted = day_of(found[2], past=True)
    yield from activities(me, lambda kind, day: kind == found[1] and day == wanted)
    yield from me.answer(str(minutes(me.notes[0][1])))


def longest(me: Player, found: Match) -> Script:
    yield from in_week(me, found[1])
    yield from me.answer(str(max(metres(said) for _, said in me.notes)))


def total_minutes(me: Player, found: Match) -> Script:
    yield from in_week(me, found[1])
    yield from me.answer(str(sum(minutes(said) for _, said in me.notes)))


def total_metres(me: Player, found: Match) -> Script:
    first, last = (day_of(found[k], past=True) for k in (2, 3))
    yield from activities(me, lambda kind, day: kind == found[1] and first <= day <= last)
    yield from me.answer(str(sum(metres(said) for _, said in me.notes)))


def pick_songs(me: Player, titles: list[str]) -> Script:
    for title in titles:
        yield from seek(me, title)
        yield from me.tap(title)


def create_playlist(me: Player, name: str) -> Script:
    yield from me.tap("Add to playlist")
    yield from me.tap("New playlist")
    yield from me.write("Playlist name", name)
    yield from me.tap("Create")


def songs(me: Player, found: Match) -> Script:
    yield from me.open("retro music")
    yield from pick_songs(me, found[2].split(", "))
    yield from create_playlist(me, found[1])
    if found.lastindex == 3:
        yield from me.tap("Playlists")
        yield from me.tap(found[1])
        yield from me.tap("Save as file")


def queue(me: Player, found: Match) -> Script:
    yield from me.open("retro music")
    yield from pick_songs(me, found[1].split(", "))
    yield from me.tap("Add to playing queue")


def lasting(me: Player, found: Match) -> Script:
    """A playlist of 45 to 50 minutes."""
    yield from me.open("retro music")
    rows: list[tuple[str, str]] = []
    yield from me.pages(lambda: gather(me, rows, r"\d+:\d\d"))
    lengths = {title: seconds(said) for title, said in rows}
    sets = (some for size in range(4, 16) for some in combinations(sorted(lengths), size))
    chosen = next(some for some in sets if 2760 <= sum(map(lengths.__getitem__, some)) <= 2940)
    yield from pick_songs(me, list(reversed(chosen)))  # from the end of the list on
    yield from create_playlist(me, found[1])


def seconds(said: str) -> int:
    minute, second = said.split(":")
    return 60 * int(minute) + int(second)


def videos(me: Player, found: Match) -> Script:
    yield from me.open("vlc")
    yield from seek(me, "VLCVideos")
    yield from me.tap("VLCVideos")
    for name, files in zip(found.groups()[::2], found.groups()[1::2], strict=True):
        for number, file in enumerate(files.split(", ")):
            yield from seek(me, file)
            yield from me.tap(file)
            if number:
                yield from me.tap("Add to playlist")
                yield from me.tap(name)
            else:
                yield from create_playlist(me, name)


def search(me: Player, place: str) -> Script:
    town = place.partition(", Liecht")[0]
    yield from me.write("Search", town, clear=True)
    yield from me.tap(town, last=True)  # the first one is the search field


def save_place(me: Player, found: Match) -> Script:
    yield from me.open("osmand")
    yield from search(me, found[2])
    yield from me.tap("Add favorite" if found[1] == "favorite location" else "Add marker")


def track(me: Player, found: Match) -> Script:
    yield from me.open("osmand")
    yield from me.tap("Plan a route")
    for town in re.findall(r"(\w+), Liechtenstein", found[1]):
        yield from search(me, town)
    yield from me.write("Track name", "trip")
    yield from me.tap("Save")


_TRACKS = r" in the OpenTracks app"
_VLC = r"playlist titled \"(.+)\" with the following files in VLC"
MEDIA: Scripts = [
    (r"What quantity of (.+) do I need for the recipe '(.+)' in the Joplin app\?.*", ingredient),
    (r"How many attendees were present in the meeting titled '(.+)' in the Joplin.*", attendees),
    (r"Is the note titled '(.+)' in the Joplin app marked as a todo item\?.*", is_todo),
    (r"How many to-dos do I have in the '(.+)' folder in the Joplin app\?.*", count_todos),
    (rf"What activities did I do (.+){_TRACKS}\?.*", kinds_on),
    (rf"How many (.+) activities did I do this week{_TRACKS}\?.*", count_week),
    (rf"How long was my (.+) activity (.+){_TRACKS}\?.*", duration),
    (rf"What was the longest distance covered in an? (.+) activity{_TRACKS} this week.*", longest),
    (rf"What was the total duration of (.+) activities{_TRACKS} this week.*", total_minutes),
    (
        rf"What was the total distance covered for (.+) activities{_TRACKS} from (.+) to (.+)\?.*",
        total_metres,
    ),
    (
        r'Create a playlist in Retro Music titled "(.+)" with .*in order: (.+)\. Then (export) .*',
        songs,
    ),
    (r'Create a playlist in Retro Music titled "(.+)" with .*in order: (.+)', songs),
    (r'Create a playlist in Retro Music titled "(.+)" with a duration between 45 .*', lasting),
    (r"Add the following songs, in order, (.+) to my playing queue in Retro music\.", queue),
    (
        rf"Create a {_VLC} .*?in order: (.+)\. And then, create a {_VLC}, in order: (.+)\.",
        videos,
    ),
    (rf"Create a {_VLC} .*?in order: (.+)", videos),
    (r"Add a (favorite location|location) marker for (.+) in the OsmAnd maps app\.", save_place),
    (r"Save a track with waypoints (.+) in the OsmAnd maps app in the same order .*", track),
]
