"""Retro Music and VLC: playlists of songs and of videos. Nothing is played.

On the screens that add files, ``Screen.of`` holds the paths of the files, one on each line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.apps.file_lists import FileBrowser
from swarm_ui.environments.androidworld.handset.file_system import (
    SHARED,
    Database,
    Row,
    name,
    table,
)
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.phone.state import Screen, Widget


class Playlists(msgspec.Struct, frozen=True, kw_only=True):
    """The screens with the playlists of an app, and those that add files to a playlist."""

    tabs: Mapping[str, str]
    """The tabs below the playlists, with their kinds of screens."""
    database: Database
    lists: str
    """Table of the playlists."""
    title: str
    """Its column with the name."""
    entries: str
    """Table of the files in them."""
    owner: str
    """Its column with the number of the playlist."""
    entry: Callable[[Handset, str, int], Row]
    """Further columns of an entry, from the file's path and its place in the list."""
    name: Callable[[Handset, Row], str]
    """Text that the list shows of an entry."""
    bottom: Callable[[int], list[Line]] = lambda row: []
    """Further rows below a playlist with this identity."""

    def page(self, handset: Handset, screen: Screen) -> Page:
        if screen.kind == "create":
            typed = ui.field(handset, "Playlist name", "name")
            create = ui.button("Create", Call(self._create, screen.of))
            return Page(title="New playlist", rows=[typed, create])
        found = self.database.rows(handset, self.lists)
        if screen.kind == "playlist":
            title, entries = found[screen.row][self.title], self.files(handset, screen.row)
            rows = [ui.text_row(self.name(handset, entry)) for entry in entries]
            bottom = self.bottom(screen.row)
            return Page(title=title, rows=ui.rows_or("No files", rows), bottom=bottom)
        lists = sorted((row[self.title], key) for key, row in found.items())
        if screen.kind == "add":
            rows = [ui.item(one, None, Call(self._add, screen.of, k)) for one, k in lists]
            new = ui.item("New playlist", None, ui.go("create", screen.of))
            return Page(title="Add to playlist", rows=[new, *rows])
        rows = [
            ui.item(one, f"{len(self.files(handset, k))} files", ui.go("playlist", row=k))
            for one, k in lists
        ]
        tabs = ui.tabs(self.tabs, screen.kind)
        return Page(title="Playlists", rows=ui.rows_or("No playlists", rows), bottom=[tabs])

    def files(self, handset: Handset, row: int) -> list[Row]:
        """The entries of a playlist, in its order."""
        entries = self.database.rows(handset, self.entries).values()
        return [entry for entry in entries if entry[self.owner] == row]

    def _create(self, handset: Handset, paths: str) -> str:
        typed = ui.typed_file_name(handset)
        if not typed:
            return "Invalid name"
        row = self.database.insert(handset, self.lists, {self.title: typed})
        return self._add(handset, paths, row)

    def _add(self, handset: Handset, paths: str, row: int) -> str:
        """Add files and return to the list of all files."""
        start = len(self.files(handset, row))
        for place, path in enumerate(paths.split("\n"), start):
            entry = {self.owner: row, **self.entry(handset, path, place)}
            self.database.insert(handset, self.entries, entry)
        handset.show(tuple(screen for screen in handset.stack if screen.kind == "list"), {})
        return "Added to playlist"


# -- Retro Music: the songs of the folder Music, and the playing queue -----------------------------

PACKAGE = "code.name.monkey.retromusic"
SONG_TABS = {"Songs": "list", "Playlists": "playlists", "Queue": "queue"}
PLAYLISTS = Database(
    f"/data/data/{PACKAGE}/databases/playlist.db",
    table("PlaylistEntity", "playlist_id", text="playlist_name")
    + table("SongEntity", "song_key", text="title data", integer="playlist_creator_id duration"),
)
QUEUE = Database(
    f"/data/data/{PACKAGE}/databases/music_playback_state.db",
    table("playing_queue", "_id", text="title data", integer="duration"),
)
_RATES = (44_100, 48_000, 32_000)


def milliseconds(data: bytes) -> int:
    """Length of an MP3 file, from the number of frames in its first frame; 0 without one."""
    start = 0
    if data[:3] == b"ID3":  # each byte of the tag's size has seven bits
        start = 10 + sum(byte << 7 * k for k, byte in enumerate(reversed(data[6:10])))
    head = data[start : start + 200]
    at = max(head.find(b"Xing"), head.find(b"Info"))
    if at < 0:
        return 0
    version, rate = head[1] >> 3 & 3, head[2] >> 2 & 3
    samples = 1152 if version == 3 else 576
    hertz = _RATES[rate] >> {3: 0, 2: 1}.get(version, 2)
    return round(int.from_bytes(head[at + 8 : at + 12]) * samples * 1000 / hertz)


def _seconds(song: Row) -> int:
    seconds: int = round(song["duration"] / 1000)
    return seconds


def _length(song: Row) -> str:
    return "{}:{:02d}".format(*divmod(_seconds(song), 60))


def _song(handset: Handset, path: str) -> Row:
    title = name(path).removesuffix(".mp3")
    return {"title": title, "data": path, "duration": milliseconds(handset.files.read(path))}


def _save(handset: Handset, row: int) -> str:
    """Export a playlist as a file."""
    lines = ["#EXTM3U"]
    for song in SONG_LISTS.files(handset, row):
        lines += [f"#EXTINF:{_seconds(song)},{song['title']}", song["data"]]
    title = PLAYLISTS.rows(handset, "PlaylistEntity")[row]["playlist_name"]
    handset.files.write(f"{SHARED}/Download/{title}.m3u", "\n".join(lines).encode())
    return f"Saved playlist to Download/{title}.m3u"


SONG_LISTS = Playlists(
    tabs=SONG_TABS,
    database=PLAYLISTS,
    lists="PlaylistEntity",
    title="playlist_name",
    entries="SongEntity",
    owner="playlist_creator_id",
    entry=lambda handset, path, place: _song(handset, path),
    name=lambda handset, song: f"{song['title']} ({_length(song)})",
    bottom=lambda row: [ui.button("Save as file", Call(_save, row))],
)


def _retro(handset: Handset, screen: Screen) -> Page:
    tabs = ui.tabs(SONG_TABS, screen.kind)
    if screen.kind == "queue":
        queued = QUEUE.rows(handset, "playing_queue").values()
        rows = ui.rows_or("Nothing here", [ui.text_row(s["title"], _length(s)) for s in queued])
        return Page(title="Playing queue", rows=rows, bottom=[tabs])
    if screen.kind != "list":
        return SONG_LISTS.page(handset, screen)
    picked, top = _picked(handset), list[Line]()
    if picked:
        add = ui.button("Add to playlist", ui.go("add", "\n".join(picked)))
        queue = ui.button("Add to playing queue", _enqueue)
        top = [ui.text_row(f"{len(picked)} selected"), (queue, add)]
    paths = filter(lambda path: path.endswith(".mp3"), handset.files.walk(f"{SHARED}/Music"))
    songs = [_row(_song(handset, path), picked) for path in sorted(paths, key=name)]
    return Page(title="Songs", rows=ui.rows_or("Nothing here", songs), top=top, bottom=[tabs])


def _row(song: Row, picked: list[str]) -> Widget:
    pick = Call(_pick, song["data"])
    if picked:
        return ui.checkbox(song["title"], song["data"] in picked, pick)
    return ui.item(song["title"], _length(song), pick, pick)


def _picked(handset: Handset) -> list[str]:
    """Paths of the ticked songs, in the order in which they were ticked."""
    return list(filter(None, handset.draft.get("picked", "").split("\n")))


def _pick(handset: Handset, path: str) -> None:
    picked = _picked(handset)
    left = [one for one in picked if one != path]
    handset.draft = {"picked": "\n".join(left if path in picked else [*picked, path])}


def _enqueue(handset: Handset) -> str:
    for path in _picked(handset):
        QUEUE.insert(handset, "playing_queue", _song(handset, path))
    handset.draft = {}
    return "Added to playing queue"


RETRO_MUSIC = AppSpec(
    "retro music", PACKAGE, ".activities.MainActivity", _retro,
    databases=(PLAYLISTS, QUEUE),
)  # fmt: skip


# -- VLC: the videos of the shared storage ---------------------------------------------------------

VIDEO_TABS = {"Browse": "list", "Playlists": "playlists"}
LIBRARY = Database(
    "/data/data/org.videolan.vlc/app_db/vlc_media.db",
    table("Playlist", "id_playlist", text="name")
    + table("Media", "id_media", text="filename")
    + table("PlaylistMediaRelation", integer="playlist_id media_id position"),
)


def _video_entry(handset: Handset, path: str, place: int) -> Row:
    """An entry of a playlist. Its video is added to the library if it is missing there."""
    videos = LIBRARY.rows(handset, "Media").items()
    known = next((k for k, video in videos if video["filename"] == name(path)), None)
    row = known or LIBRARY.insert(handset, "Media", {"filename": name(path)})
    return {"media_id": row, "position": place}


VIDEO_LISTS = Playlists(
    tabs=VIDEO_TABS,
    database=LIBRARY,
    lists="Playlist",
    title="name",
    entries="PlaylistMediaRelation",
    owner="playlist_id",
    entry=_video_entry,
    name=lambda handset, entry: LIBRARY.rows(handset, "Media")[entry["media_id"]]["filename"],
)
BROWSER = FileBrowser(
    root=SHARED,
    title="Internal memory",
    suffixes=(".mp4",),
    open=lambda handset, path: handset.open("video", path),
    bottom=lambda folder: [ui.tabs(VIDEO_TABS, "list")],
)


def _vlc(handset: Handset, screen: Screen) -> Page:
    if screen.kind in ("add", "create", "playlist", "playlists"):
        return VIDEO_LISTS.page(handset, screen)
    if screen.kind == "video":
        add = ui.button("Add to playlist", ui.go("add", screen.of))
        return Page(title=name(screen.of), rows=[ui.image(name(screen.of))], bottom=[add])
    return BROWSER.page(handset, screen)


VLC = AppSpec(
    "vlc", "org.videolan.vlc", ".gui.MainActivity", _vlc,
    databases=(LIBRARY,),
    folders=(f"{SHARED}/VLCVideos",),
)  # fmt: skip
