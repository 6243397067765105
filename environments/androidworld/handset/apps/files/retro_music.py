"""Retro Music: the songs of the folder Music, playlists, and the playing queue. Nothing sounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.files.playlists import Playlists
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name
from swarm_ui.environments.androidworld.handset.handset import (  # fmt: skip
    AppSpec,
    Call,
    Control,
    Handset,
    Line,
    Page,
)
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Row, Screen, Widget

APP = "retro music"
PACKAGE = "code.name.monkey.retromusic"
TABS = {"Songs": "list", "Playlists": "playlists", "Queue": "queue"}
_SONG = (db.text("title"), db.text("data", "path"), db.integer("duration"))
PLAYLISTS = db.Database(
    f"/data/data/{PACKAGE}/databases/playlist.db",
    (
        db.SqlTable(name="PlaylistEntity", key="playlist_id", phone_table="music playlist",
                    columns=(db.text("playlist_name", "name"),)),
        db.SqlTable(name="SongEntity", key="song_key", phone_table="music playlist song",
                    columns=(db.integer("playlist_creator_id", "list"), *_SONG)),
    ),
)  # fmt: skip
QUEUE = db.single_table(
    f"/data/data/{PACKAGE}/databases/music_playback_state.db",
    "playing_queue", "_id", "music queue", _SONG,
)  # fmt: skip
_RATES = (44_100, 48_000, 32_000)


def milliseconds(data: bytes) -> int:
    """Length of an MP3 file, from the number of frames in its first frame; 0 without one."""
    start = 0
    if data[:3] == b"ID3":  # each byte of the tag's size has seven bits
        start = 10 + sum(
            byte << shift for byte, shift in zip(data[6:10], (21, 14, 7, 0), strict=True)
        )
    head = data[start : start + 200]
    at = max(head.find(b"Xing"), head.find(b"Info"))
    if at < 0:
        return 0
    version, rate = head[1] >> 3 & 3, head[2] >> 2 & 3
    samples = 1152 if version == 3 else 576
    hertz = _RATES[rate] >> {3: 0, 2: 1}.get(version, 2)
    return round(int.from_bytes(head[at + 8 : at + 12]) * samples * 1000 / hertz)


def _length(song: Row) -> str:
    return f"{_seconds(song) // 60}:{_seconds(song) % 60:02d}"


def _seconds(song: Row) -> int:
    return round(int(song["duration"]) / 1000)


def _song(handset: Handset, path: str) -> Row:
    title = name(path).removesuffix(".mp3")
    return {"title": title, "path": path, "duration": str(milliseconds(handset.read(path)))}


def _save(handset: Handset, row: int) -> str:
    """Export a playlist as a file."""
    lines = ["#EXTM3U"]
    for song in LISTS.files(handset, row):
        lines += [f"#EXTINF:{_seconds(song)},{song['title']}", song["path"]]
    title = handset.tables["music playlist"][row]["name"]
    handset.write(f"{SHARED}/Download/{title}.m3u", "\n".join(lines).encode())
    return f"Saved playlist to Download/{title}.m3u"


LISTS = Playlists(
    app=APP,
    lists="music playlist",
    entries="music playlist song",
    entry=lambda handset, path, place: _song(handset, path),
    name=lambda handset, song: f"{song['title']} ({_length(song)})",
    bottom=lambda row: [ui.button("Save as file", Call(partial(_save, row=row)))],
)


def _build(handset: Handset, screen: Screen) -> Page:
    tabs = ui.tabs(APP, TABS, screen.kind)
    if screen.kind == "list":
        paths = filter(lambda path: path.endswith(".mp3"), handset.files.walk(f"{SHARED}/Music"))
        rows = [_row(handset, path) for path in sorted(paths, key=name)]
        return _page("Songs", rows, [tabs], _bar(handset))
    if screen.kind == "playlists":
        return _page("Playlists", LISTS.page(handset, screen).rows, [tabs])
    if screen.kind == "queue":
        songs = handset.tables["music queue"].values()
        rows = [ui.text_row(song["title"], _length(song)) for song in songs]
        return _page("Playing queue", rows, [ui.button("Clear queue", Call(_clear)), tabs])
    return LISTS.page(handset, screen)


def _page(
    title: str, rows: Sequence[Line], bottom: Sequence[Line], top: Sequence[Line] = ()
) -> Page:
    return Page(title=title, rows=rows or [ui.text_row("Nothing here")], top=top, bottom=bottom)


def _picked(handset: Handset) -> list[str]:
    """Paths of the ticked songs, in the order in which they were ticked."""
    return list(filter(None, handset.draft.get("picked", "").split("\n")))


def _row(handset: Handset, path: str) -> Widget:
    song, picked = _song(handset, path), _picked(handset)
    pick = Call(partial(_pick, path=path))
    if picked:
        return Control("checkbox", song["title"], None, path in picked, pick, long_press=pick)
    return ui.item(song["title"], _length(song), pick, pick)


def _pick(handset: Handset, path: str) -> None:
    picked = _picked(handset)
    left = [one for one in picked if one != path]
    handset.draft = {"picked": "\n".join(left if path in picked else [*picked, path])}


def _bar(handset: Handset) -> list[Line]:
    """Buttons for the ticked songs."""
    picked = _picked(handset)
    if not picked:
        return []
    queue = ui.button("Add to playing queue", Call(_enqueue))
    add = ui.button("Add to playlist", ui.open_screen(APP, "add", "\n".join(picked)))
    return [ui.text_row(f"{len(picked)} selected"), (queue, add)]


def _enqueue(handset: Handset) -> str:
    for path in _picked(handset):
        handset.insert("music queue", _song(handset, path))
    handset.draft = {}
    return "Added to playing queue"


def _clear(handset: Handset) -> None:
    handset.tables = {**handset.tables, "music queue": {}}


RETRO_MUSIC = AppSpec(
    name=APP,
    package=PACKAGE,
    activity=".activities.MainActivity",
    build=_build,
    databases=(PLAYLISTS, QUEUE),
)
