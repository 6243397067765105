"""Files shows the shared storage. Simple Gallery shows its pictures and videos."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.apps.file_browser import FileBrowser
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.ui.screen import Screen, Widget

PICTURES = (".jpg", ".jpeg", ".png", ".svg", ".gif", ".mp4")


def _show(handset: Handset, path: str, app: str) -> None:
    handset.show((*handset.stack, Screen(app, "view", path)))


def _view(handset: Handset, path: str) -> Page:
    size = len(handset.read(path))
    rows: list[Widget] = [ui.text_row(name(path), f"{size} bytes")]
    if path.endswith(PICTURES):
        rows.insert(0, ui.image(name(path)))
    return Page(title=name(path), rows=rows)


FILE_BROWSER = FileBrowser(
    app="files",
    root=SHARED,
    title="sdk_gphone_x86_64",
    open=lambda handset, path: _show(handset, path, "files"),
)
GALLERY_BROWSER = FileBrowser(
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
        storage = ui.item("sdk_gphone_x86_64", "Storage", ui.open_screen("files", "list", SHARED))
        downloads = ui.item(
            "Downloads", "Folder", ui.open_screen("files", "list", f"{SHARED}/Download")
        )
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
            ui.item(name(path), "Folder", ui.open_screen("simple gallery pro", "list", path))
            for path in with_pictures
        ]
        return Page(title="Gallery", rows=rows or [ui.text_row("No media files have been found.")])
    return GALLERY_BROWSER.page(handset, screen)


FILES = AppSpec(
    name="files",
    package="com.google.android.documentsui",
    activity="com.android.documentsui.files.FilesActivity",
    build=_files,
)
GALLERY = AppSpec(
    name="simple gallery pro",
    package="com.simplemobiletools.gallery.pro",
    activity="com.simplemobiletools.gallery.pro.activities.MainActivity",
    build=_gallery,
)
