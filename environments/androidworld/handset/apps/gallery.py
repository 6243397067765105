"""Files: the whole shared storage. Gallery: its pictures and films."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.apps.file_browser import Browser
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name
from swarm_ui.environments.androidworld.handset.handset import Control, Edition, Handset, Page
from swarm_ui.environments.androidworld.handset.screen.widgets import go, item, told
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget

PICTURES = (".jpg", ".jpeg", ".png", ".svg", ".gif", ".mp4")


def _show(handset: Handset, path: str, app: str) -> None:
    handset.show((*handset.stack, Screen(app, "view", path)))


def _view(handset: Handset, path: str) -> Page:
    size = len(handset.read(path))
    rows: list[Widget] = [told(name(path), f"{size} bytes")]
    if path.endswith(PICTURES):
        rows.insert(0, Control("image", "", description=name(path), quiet=True))
    return Page(title=name(path), rows=rows)


FILE_BROWSER = Browser(
    app="files",
    root=SHARED,
    title="sdk_gphone_x86_64",
    open=lambda handset, path: _show(handset, path, "files"),
)
GALLERY_BROWSER = Browser(
    app="simple gallery pro",
    root=SHARED,
    title="Internal",
    suffixes=PICTURES,
    open=lambda handset, path: _show(handset, path, "simple gallery pro"),
)


def _files(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "view":
        return _view(handset, screen.of)
    if screen.kind == "list" and not screen.of:
        storage = item("sdk_gphone_x86_64", "Storage", go(Screen("files", "list", SHARED)))
        downloads = item("Downloads", "Folder", go(Screen("files", "list", f"{SHARED}/Download")))
        return Page(title="Files", rows=[storage, downloads])
    return FILE_BROWSER.page(handset, screen)


def _gallery(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "view":
        return _view(handset, screen.of)
    if screen.kind == "list" and not screen.of:
        with_pictures = sorted(
            {
                path.rpartition("/")[0]
                for path in handset.files.entries
                if path.startswith(SHARED + "/") and path.endswith(PICTURES)
            }
        )
        rows: list[Widget] = [
            item(name(path), "Folder", go(Screen("simple gallery pro", "list", path)))
            for path in with_pictures
        ]
        return Page(title="Gallery", rows=rows or [told("No media files have been found.")])
    return GALLERY_BROWSER.page(handset, screen)


FILES = Edition(
    app="files",
    package="com.google.android.documentsui",
    activity="com.android.documentsui.files.FilesActivity",
    build=_files,
)
GALLERY = Edition(
    app="simple gallery pro",
    package="com.simplemobiletools.gallery.pro",
    activity="com.simplemobiletools.gallery.pro.activities.MainActivity",
    build=_gallery,
)
