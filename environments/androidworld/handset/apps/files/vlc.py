"""VLC: the videos of the shared storage and playlists of them. Nothing is played."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.files.file_browser import FileBrowser
from swarm_ui.environments.androidworld.handset.apps.files.playlists import Playlists
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Row, Screen

APP = "vlc"
TABS = {"Browse": "list", "Playlists": "playlists"}
LIBRARY = db.Database(
    "/data/data/org.videolan.vlc/app_db/vlc_media.db",
    (
        db.SqlTable(name="Playlist", key="id_playlist", phone_table="video playlist",
                    columns=(db.text("name"),)),
        db.SqlTable(name="Media", key="id_media", phone_table="video",
                    columns=(db.text("filename", "name"),)),
        db.SqlTable(name="PlaylistMediaRelation", key="rowid", phone_table="video playlist entry",
                    columns=(db.integer("playlist_id", "list"), db.integer("media_id", "media"),
                             db.integer("position", "place"))),
    ),
)  # fmt: skip


def _entry(handset: Handset, path: str, place: int) -> Row:
    """An entry of a playlist. Its video is added to the library if it is missing there."""
    videos = handset.tables["video"].items()
    known = next((k for k, video in videos if video["name"] == name(path)), None)
    row = handset.insert("video", {"name": name(path)}) if known is None else known
    return {"media": str(row), "place": str(place)}


def _open(handset: Handset, path: str) -> None:
    handset.show((*handset.stack, Screen(APP, "video", path)))


LISTS = Playlists(
    app=APP,
    lists="video playlist",
    entries="video playlist entry",
    entry=_entry,
    name=lambda handset, entry: handset.tables["video"][int(entry["media"])]["name"],
)
BROWSER = FileBrowser(
    app=APP,
    root=SHARED,
    title="Internal memory",
    suffixes=(".mp4",),
    open=_open,
    bottom=lambda handset, folder: [ui.tabs(APP, TABS, "list")],
)


def _build(handset: Handset, screen: Screen) -> Page:
    if screen.kind in ("add", "create", "playlist", "drop"):
        return LISTS.page(handset, screen)
    if screen.kind == "playlists":
        lists = LISTS.page(handset, screen)
        return Page(title=lists.title, rows=lists.rows, bottom=[ui.tabs(APP, TABS, "playlists")])
    if screen.kind == "video":
        add = ui.button("Add to playlist", ui.open_screen(APP, "add", screen.of))
        return Page(title=name(screen.of), rows=[ui.image(name(screen.of))], bottom=[add])
    return BROWSER.page(handset, screen)


VLC = AppSpec(
    name=APP,
    package="org.videolan.vlc",
    activity=".gui.MainActivity",
    build=_build,
    databases=(LIBRARY,),
    folders=(f"{SHARED}/VLCVideos",),
)
