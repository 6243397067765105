"""Notes, activities, playlists and maps: what is on the screen is in the apps' own files."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from handset_touches import place, seen, touch, write

from swarm_ui.environments.androidworld.handset import APPS, Adb, AdbFailure, Handset
from swarm_ui.environments.androidworld.handset.apps.files.retro_music import (
    PLAYLISTS,
    QUEUE,
    milliseconds,
)
from swarm_ui.environments.androidworld.handset.apps.files.vlc import LIBRARY
from swarm_ui.environments.androidworld.handset.apps.joplin import NOTES
from swarm_ui.environments.androidworld.handset.apps.osmand import FAVORITES, FILES, MARKERS, find
from swarm_ui.environments.androidworld.handset.apps.sports import TRACKS
from swarm_ui.environments.androidworld.handset.databases import Database
from swarm_ui.environments.androidworld.handset.screen.touch import long_press

VIDEOS = "/sdcard/VLCVideos"


@pytest.fixture
def handset() -> Handset:
    return Handset(APPS)


def rows(handset: Handset, database: Database, sql: str) -> list[str]:
    out = Adb(handset).run(["shell", f'sqlite3 {database.path} "{sql}"'])
    return out.decode().splitlines()


def mp3(seconds: int, *, tag: bool = True, rate: int = 44_100) -> bytes:
    """An ID3 tag, and the first frame of an MPEG 1 (or at 11,025 Hz MPEG 2.5) file."""
    version, samples = (3, 1152) if rate == 44_100 else (0, 576)
    frames = round(seconds * rate / samples)
    head = bytes((0xFF, 0xE3 | version << 3, 0x90, 0xC0)) + bytes(17)
    frame = head + b"Info" + (1).to_bytes(4) + frames.to_bytes(4)
    return (b"ID3\x04\0\0\0\0\x01\x02" + bytes(130) if tag else b"") + frame


@pytest.mark.parametrize("rate", [44_100, 11_025])
@pytest.mark.parametrize("tag", [False, True])
def test_the_length_of_a_song_is_read_from_its_first_frame(tag: bool, rate: int) -> None:
    assert abs(milliseconds(mp3(200, tag=tag, rate=rate)) - 200_000) < 30
    assert milliseconds(b"no music") == 0


def test_songs_are_added_in_the_order_in_which_they_were_ticked(handset: Handset) -> None:
    for number, title in enumerate(("Alpha", "Beta", "Gamma")):
        handset.write(f"/sdcard/Music/{title}.mp3", mp3(60 + number))
    touch(handset, "retro music", "Gamma", "Alpha", "Add to playlist", "New playlist")
    write(handset, "Playlist name", "Mix")
    touch(handset, "Create")
    assert rows(handset, PLAYLISTS, "select playlist_name from PlaylistEntity") == ["Mix"]
    titles = "select title from SongEntity order by song_key"
    assert rows(handset, PLAYLISTS, titles) == ["Gamma", "Alpha"]
    touch(handset, "Playlists", "Mix", "Save as file")
    exported = handset.read("/sdcard/Download/Mix.m3u").decode().splitlines()
    assert exported[:2] == ["#EXTM3U", "#EXTINF:62,Gamma"]
    touch(handset, "Delete", "Delete")
    assert rows(handset, PLAYLISTS, titles) == []


def test_the_playing_queue_grows_and_is_cleared(handset: Handset) -> None:
    for title in ("Alpha", "Beta"):
        handset.write(f"/sdcard/Music/{title}.mp3", mp3(60))
    touch(handset, "retro music", "Beta", "Alpha", "Beta", "Add to playing queue")
    assert rows(handset, QUEUE, "select title from playing_queue") == ["Alpha"]
    touch(handset, "Queue", "Clear queue")
    assert rows(handset, QUEUE, "select title from playing_queue") == []


def test_videos_are_added_to_playlists(handset: Handset) -> None:
    for name in ("a.mp4", "b.mp4", "c.txt"):
        handset.write(f"{VIDEOS}/{name}", b"film")
    touch(handset, "vlc", "VLCVideos")
    assert "c.txt" not in seen(handset)
    touch(handset, "b.mp4", "Add to playlist", "New playlist")
    write(handset, "Playlist name", "Trip")
    touch(handset, "Create", "a.mp4", "Add to playlist", "Trip")
    query = (
        "select name, filename, position from PlaylistMediaRelation join Playlist on "
        "id_playlist = playlist_id join Media on id_media = media_id order by position"
    )
    assert rows(handset, LIBRARY, query) == ["Trip|b.mp4|0", "Trip|a.mp4|1"]


def test_notes_from_sql_are_shown_in_their_notebook(handset: Handset, tmp_path: Path) -> None:
    file = tmp_path / "joplin.sqlite"
    file.write_bytes(handset.read(NOTES.path))
    with sqlite3.connect(file) as connection:
        connection.execute("insert into folders (id, title) values ('f1', 'Home')")
        connection.execute("insert into folders (id, title) values ('f2', 'Work')")
        note = "insert into notes (id, parent_id, title, body, is_todo) values (?, ?, ?, ?, ?)"
        connection.execute(note, ("n1", "f1", "Paint", "Two cans\nBlue", 1))
        connection.execute(note, ("n2", "f2", "Call", "", 0))
    connection.close()
    Adb(handset).run(["push", str(file), NOTES.path])
    touch(handset, "joplin", "Home")
    assert "Paint" in seen(handset)
    assert "Call" not in seen(handset)
    assert place(handset, "To-do")
    touch(handset, "New note")
    write(handset, "Title", "Shop")
    touch(handset, "Save")
    kept = rows(handset, NOTES, "select parent_id, title, is_todo from notes order by title")
    assert kept == ["f2|Call|0", "f1|Paint|1", "f1|Shop|0"]


def test_activities_are_listed_and_cannot_be_recorded(handset: Handset) -> None:
    sql = (
        "insert into tracks (name, category, description, starttime, totaltime, totaldistance, "
        "uuid) values ('Lake', 'rowing', '', 1697183400000, 5400000, 1609.34, x'00ff')"
    )
    rows(handset, TRACKS, sql)
    touch(handset, "opentracks")
    assert seen(handset) == ["Search", "Lake"]
    assert place(handset, "rowing · Fri 2023-10-13 07:50 · 1.00 mi · 1:30:00")
    assert rows(handset, TRACKS, "select hex(uuid) from tracks") == ["00FF"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("schon", ["Schönberg"]),
        ("Planken, Liechtenstein", ["Oberplanken", "Planken"]),
        ("47.5, 9.25", ["47.5, 9.25"]),
        ("Paris", []),
        ("", []),
    ],
)
def test_places_are_found_by_name_and_by_coordinates(query: str, names: list[str]) -> None:
    assert list(find(query)) == names


def test_a_place_becomes_a_favorite_a_marker_and_a_point_of_a_track(handset: Handset) -> None:
    touch(handset, "osmand")
    write(handset, "Search", "Vaduz")
    touch(handset, "47.14100, 9.52090", "Add favorite", "47.14100, 9.52090", "Add marker")
    touch(handset, "Plan a route")
    for town in ("Schaan", "Vaduz"):
        long_press(handset, *place(handset, "Search"))
        write(handset, "Search", town)
        touch(handset, f"{find(town)[town][0]:.5f}, {find(town)[town][1]:.5f}")
    touch(handset, "Save")
    assert handset.toast == "A track needs a name and two points"
    write(handset, "Track name", "trip")
    touch(handset, "Save")
    gpx = {"g": "http://www.topografix.com/GPX/1/1"}
    favorites = ET.fromstring(handset.read(FAVORITES))
    assert [one.text for one in favorites.findall("g:wpt/g:name", gpx)] == ["Vaduz"]
    assert rows(handset, MARKERS, "select title, marker_lat from map_markers") == ["Vaduz|47.141"]
    track = ET.fromstring(handset.read(f"{FILES}/tracks/trip.gpx"))
    points = [point.attrib["lat"] for point in track.findall("g:trk/g:trkseg/g:trkpt", gpx)]
    assert points == ["47.1663000", "47.1410000"]
    touch(handset, "Favorites")
    assert seen(handset) == ["Vaduz"]
    handset.write(FAVORITES, b"no GPX")
    with pytest.raises(AdbFailure, match="not a GPX file"):
        seen(handset)
