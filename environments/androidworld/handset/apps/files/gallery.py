"""Files shows the shared storage. Simple Gallery shows its pictures and videos."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.apps.files.file_browser import FileBrowser
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Screen, Widget

PICTURES = (".jpg", ".jpeg", ".png", ".svg", ".gif", ".mp4")


def _show(handset: Handset, path: str, app: str) -> None:
    handset.show((*handset.stack, Screen(app, "view", path)))


def _view(handset: Handset, path: str) -> Page:
    if not handset.files.is_file(path):  # removed over adb
        return Page(title=name(path), rows=[ui.text_row("No longer there")])
    rows: list[Line] = [ui.text_row(name(path), f"{len(handset.read(path))} bytes")]
    if path.endswith(PICTURES):
        rows.insert(0, ui.image(name(path)))
    return Page(title=name(path), rows=rows)


def _page(handset: Handset, screen: Screen, browser: FileBrowser) -> Page:
    if screen.kind == "view":
        return _view(handset, screen.of)
    if screen.kind != "list" or screen.of:
        return browser.page(handset, screen)
    if browser is GALLERY_BROWSER:
        return _picture_folders(handset)
    downloads = ui.open_screen("files", "list", f"{SHARED}/Download")
    storage = ui.open_screen("files", "list", SHARED)
    rows = [ui.item(browser.title, "Storage", storage), ui.item("Downloads", "Folder", downloads)]
    return Page(title="Files", rows=rows)


def _picture_folders(handset: Handset) -> Page:
    folders = {
        path.rpartition("/")[0]
        for path in handset.files.entries
        if path.startswith(SHARED + "/") and path.endswith(PICTURES)
    }
    rows: list[Widget] = [
        ui.item(name(path), "Folder", ui.open_screen(GALLERY_BROWSER.app, "list", path))
        for path in sorted(folders)
    ]
    none = ui.text_row("No media files have been found.")
    return Page(title="Gallery", rows=rows or [none])


FILE_BROWSER = FileBrowser(
    app="files", root=SHARED, title="sdk_gphone_x86_64", open=partial(_show, app="files")
)
GALLERY_BROWSER = FileBrowser(
    app="simple gallery pro",
    root=SHARED,
    title="Internal",
    suffixes=PICTURES,
    open=partial(_show, app="simple gallery pro"),
)
FILES = AppSpec(
    name="files",
    package="com.google.android.documentsui",
    activity="com.android.documentsui.files.FilesActivity",
    build=partial(_page, browser=FILE_BROWSER),
)
GALLERY = AppSpec(
    name="simple gallery pro",
    package="com.simplemobiletools.gallery.pro",
    activity="com.simplemobiletools.gallery.pro.activities.MainActivity",
    build=partial(_page, browser=GALLERY_BROWSER),
)
