"""Files: everything that is stored, by folder. Gallery and recorder show the same records."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.record_screens import PAGE, UNPAGED_ROWS, form, pages_of
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.effects import Back, Copy, Flip, Go, Update
from swarm_ui.environments.phone.device.full_effects import MoveToTrash, RestoreFile
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen, Widget, Zone
from swarm_ui.environments.phone.parameters import Sampler

ROOT = Screen("files")
FOLDERS = ("documents", "downloads", "pictures", "recordings")
TRASH = "trash"
FILE = Table(
    name="file",
    app="files",
    fields=(Field("name"), Field("folder", "choice", FOLDERS), Field("starred", "switch")),
    trail=(ROOT,),
    edit="rename or move",
    delete="move to trash",
    confirm="move to trash",
)
"""Beside these fields a file has ``kind``, ``size``, the folder it ``was`` in before the trash, and
``lens`` and ``flash`` if the camera took it."""
KINDS = {
    "documents": ("document",),
    "downloads": ("document",),
    "pictures": ("photo", "photo", "video"),
    "recordings": ("recording",),
}
_SHOWN = {"gallery": ("photo", "video"), "recorder": ("recording",)}
"""App -> the kinds of file it shows."""


def folder(name: str) -> Screen:
    """The list of a folder."""
    return Screen("files", "folder", name)


def file_path(key: int, row: Row, via: str = "files") -> Path:
    """Screens to a file in an app that shows it."""
    if via in _SHOWN and row["kind"] in _SHOWN[via] and row["folder"] != TRASH:
        return (Screen(via), Screen(via, "detail", "file", key))
    return (ROOT, folder(row["folder"]), Screen("files", "detail", "file", key))


def in_folder(device: Device, name: str) -> dict[int, Row]:
    """Files of a folder, oldest first."""
    return {k: row for k, row in device.tables["file"].items() if row["folder"] == name}


def of_app(device: Device, app: str) -> dict[int, Row]:
    """Files that an app other than files shows, oldest first."""
    kinds = _SHOWN[app]
    rows = device.tables["file"].items()
    return {k: row for k, row in rows if row["kind"] in kinds and row["folder"] != TRASH}


def file_list(
    device: Device, app: str, rows: dict[int, Row], zone: Zone = "row", value: str = "size"
) -> list[Widget]:
    """Files to open, a page of them if there are many."""
    shown = list(rows.items())
    if long := len(shown) > UNPAGED_ROWS:
        shown = shown[device.page * PAGE : (device.page + 1) * PAGE]
    widgets = [
        Widget(
            "image" if zone == "tile" else "item",
            row["name"],
            None if zone == "tile" else f"{row[value]} mb" if value == "size" else row[value],
            effect=Go(Screen(app, "detail", "file", key)),
            zone=zone,
        )
        for key, row in shown
    ]
    if not rows:
        widgets.append(Widget("label", "empty"))
    if long:
        widgets.append(Widget("label", "more", scrollable=True))
    return widgets


def file_screen(device: Device, screen: Screen) -> list[Widget]:
    """A file, the form that renames or moves it, or the question before it goes to the trash."""
    key, row = screen.row, device.tables["file"][screen.row]
    if screen.kind == "edit":
        return form(FILE, device.draft, Update(FILE, key))
    if screen.kind == "confirm":
        return [
            Widget("dialog", f"move {row['name']} to trash ?", zone="dialog"),
            Widget("button", "move to trash", effect=MoveToTrash(key)),
            Widget("button", "cancel", effect=Back()),
        ]
    size = f"{row['size']} mb"
    shown = {"name": row["name"], "folder": row["folder"], "kind": row["kind"], "size": size}
    widgets = [Widget("item", name, v, effect=Copy(name, v)) for name, v in shown.items()]
    if screen.app == "gallery":
        widgets.insert(
            0, Widget("image", "", description=f"{row['kind']} {row['name']}", zone="hero")
        )
    if row["folder"] == TRASH:
        return [*widgets, Widget("button", "restore", effect=RestoreFile(key))]
    flip = Flip(FILE, key, "starred")
    widgets.append(Widget("switch", "starred", None, row["starred"] == "on", flip))
    draft = {"name": row["name"], "folder": row["folder"]}
    go = Go(Screen(screen.app, "edit", "file", key), draft)
    widgets.append(Widget("button", FILE.edit, effect=go))
    confirm = Go(Screen(screen.app, "confirm", "file", key))
    widgets.append(Widget("button", FILE.delete, effect=confirm))
    return widgets


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "folder":
        return file_list(device, "files", in_folder(device, screen.of))
    if screen.row:
        return file_screen(device, screen)
    return [Widget("item", name, effect=Go(folder(name))) for name in (*FOLDERS, TRASH)]


def _last(device: Device, screen: Screen) -> int:
    rows = in_folder(device, screen.of) if screen.kind == "folder" else {}
    return pages_of(len(rows)) - 1


def last_of_app(device: Device, screen: Screen) -> int:
    """Last page of the list of an app that shows some of the files."""
    return 0 if screen.kind != "list" else pages_of(len(of_app(device, screen.app))) - 1


def sample(sampler: Sampler) -> dict[str, str]:
    return random_file(sampler, sampler.pick(FOLDERS))


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


FILES = App(name="files", widgets=widgets, sample=sample, tables=(FILE,), last=_last)
