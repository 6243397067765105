"""Files: all stored files by folder. Gallery and recorder show some of them.

The recorder is a test app: no training template opens it.
"""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import (
    App,
    confirm,
    copyable,
    form,
    last_page_of,
    paged,
    switch,
)
from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.effects import (
    Back,
    Go,
    SaveCapture,
    Share,
    Trash,
    Update,
)
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler

ROOT = Screen("files")
FOLDERS = ("documents", "downloads", "pictures", "recordings")
TRASH = "trash"
RECORDING = Screen("recorder", "recording")
RECORDING_PATH: Path = (Screen("recorder"), RECORDING)
FILE = Table(
    name="file",
    app="files",
    fields=(
        Field("name"),
        Field("folder", "choice", FOLDERS),
        Field("starred", "switch", default="off"),
    ),
    trail=(ROOT,),
    edit="rename or move",
    delete="move to trash",
)
"""A file also has a ``kind`` and a ``size``; in the trash, ``was`` names the folder it came from.
Photos and videos have ``lens`` and ``flash``."""
KINDS = {
    "documents": ("document",),
    "downloads": ("document",),
    "pictures": ("photo", "photo", "video"),
    "recordings": ("recording",),
}
_SHOWN = {"gallery": ("photo", "video"), "recorder": ("recording",)}
"""App -> the kinds of file it shows."""


def folder(name: str) -> Screen:
    """The list of the files in a folder."""
    return Screen("files", "folder", name)


def file_path(key: int, row: Row, via: str = "files") -> Path:
    """The screens that lead to a file, in an app that shows it."""
    if via in _SHOWN and row["kind"] in _SHOWN[via] and row["folder"] != TRASH:
        return (Screen(via), Screen(via, "detail", "file", key))
    return (ROOT, folder(row["folder"]), Screen("files", "detail", "file", key))


def in_folder(device: Device, name: str) -> dict[int, Row]:
    """Files of a folder, oldest first."""
    return {k: row for k, row in device.tables["file"].items() if row["folder"] == name}


def _listed(device: Device, screen: Screen) -> dict[int, Row]:
    """Files on the current list, oldest first."""
    if screen.kind == "folder":
        return in_folder(device, screen.of)
    kinds, rows = _SHOWN.get(screen.app, ()), device.tables["file"].items()
    return {k: row for k, row in rows if row["kind"] in kinds and row["folder"] != TRASH}


def _file_list(device: Device, screen: Screen) -> list[Widget]:
    """Files to open: thumbnails in the gallery, names and sizes elsewhere."""
    app, tiles = screen.app, screen.app == "gallery"
    shown = [
        Widget(
            "image" if tiles else "item",
            row["name"],
            None if tiles else f"{row['size']} mb",
            effect=Go(Screen(app, "detail", "file", key)),
            zone="tile" if tiles else "row",
        )
        for key, row in _listed(device, screen).items()
    ]
    return paged(device, shown)


def _file_screen(device: Device, screen: Screen) -> list[Widget]:
    """The screen of a file: the file, the form to rename or move it, or the dialog that asks before
    it is moved to the trash."""
    key, row = screen.row, device.tables["file"][screen.row]
    if screen.kind == "edit":
        return form(FILE, device.draft, Update(FILE, key))
    if screen.kind == "confirm":
        return confirm(f"move {row['name']} to trash ?", "move to trash", Trash(key))
    values = {"name": row["name"], "folder": row["folder"]}
    shown = copyable({**values, "kind": row["kind"], "size": f"{row['size']} mb"})
    if screen.app == "gallery":
        picture = f"{row['kind']} {row['name']}"
        shown.insert(0, Widget("image", "", description=picture, zone="hero"))
    if row["folder"] == TRASH:
        return [*shown, Widget("button", "restore", effect=Trash(key, restore=True))]
    edit = Go(Screen(screen.app, "edit", "file", key), values)
    delete = Go(Screen(screen.app, "confirm", "file", key))
    return [
        *shown,
        switch(FILE, key, row, "starred"),
        Widget("button", FILE.edit, effect=edit),
        Widget("button", FILE.delete, effect=delete),
    ]


def _files(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "folder":
        return _file_list(device, screen)
    if screen.row:
        return _file_screen(device, screen)
    return [Widget("item", name, effect=Go(folder(name))) for name in (*FOLDERS, TRASH)]


def _gallery(device: Device, screen: Screen) -> list[Widget]:
    if not screen.row:
        return _file_list(device, screen)
    widgets = _file_screen(device, screen)
    if screen.kind == "detail" and "messages" in device.installed:
        name = device.tables["file"][screen.row]["name"]
        share = Share(MESSAGE.path("new"), "text", name)
        widgets.append(Widget("button", "share in a message", effect=share))
    return widgets


def _recorder(device: Device, screen: Screen) -> list[Widget]:
    if screen == RECORDING:
        return [
            Widget("label", "recording"),
            Widget("field", "name", device.draft.get("name", ""), field="name"),
            Widget("button", "stop and save", effect=SaveCapture("recording")),
            Widget("button", "discard", effect=Back()),
        ]
    if screen.row:
        return _file_screen(device, screen)
    return [*_file_list(device, screen), Widget("button", "record", effect=Go(RECORDING))]


def _last(device: Device, screen: Screen) -> int:
    lists = screen.kind in ("list", "folder")
    return last_page_of(len(_listed(device, screen))) if lists else 0


def random_file(sampler: Sampler, where: str) -> dict[str, str]:
    """A random file of a folder."""
    kind = sampler.pick(KINDS[where])
    camera = kind in ("photo", "video")
    return {
        "name": sampler.title(),
        "folder": where,
        "kind": kind,
        "size": sampler.number(),
        "starred": sampler.pick(("off", "off", "on")),
        "was": "",
        "lens": "back" if camera else "",
        "flash": "off" if camera else "",
    }


FILES = App(
    name="files",
    widgets=_files,
    sample=lambda sampler: random_file(sampler, sampler.pick(FOLDERS)),
    tables=(FILE,),
    menu=True,
    last=_last,
)
GALLERY = App(name="gallery", widgets=_gallery, last=_last)
RECORDER = App(name="recorder", widgets=_recorder, needs={"recording": "microphone"}, last=_last)
