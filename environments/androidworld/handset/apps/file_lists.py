"""Files, Simple Gallery and Markor: lists of files. A long press ticks a file; ticked files can be
deleted, moved, copied and renamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.phone.effects import Back
from swarm_ui.environments.phone.state import Screen, Widget


class FileBrowser(msgspec.Struct, frozen=True, kw_only=True):
    """The file screens of an app. ``Screen.of`` is the path of the folder."""

    app: str
    root: str
    """Folder in which the choice of a target begins."""
    title: str
    """Title of the root."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of the shown files. Empty: all files."""
    open: Callable[[Handset, str], object] = lambda handset, path: "No app shows this file"
    """Called with the handset and a file's path. A text is shown as a toast."""
    bottom: Callable[[Handset, str], list[Line]] = lambda handset, folder: []
    home: Callable[[Handset], Page] | None = None
    """The first screen; ``None``: the root."""

    def page(self, handset: Handset, screen: Screen) -> Page:
        """The page of a file screen: the list, a dialog or form about ticked files, or the choice
        of a target folder."""
        if screen.kind == "delete":
            count = len(handset.picked)
            what = name(min(handset.picked)) if count == 1 else f"{count} items"
            return ui.dialog("Delete", f"Delete {what}?", "OK", _delete)
        if screen.kind == "rename":
            buttons = ui.button("Cancel", Back()), ui.button("OK", Call(_rename, screen.of))
            return Page(title="Rename", rows=[ui.field(handset, "Name", "name"), buttons])
        if screen.kind in ("move", "copy"):
            return self._target(handset, screen)
        if self.home is not None and not screen.of:
            return self.home(handset)
        return self._listing(handset, screen.of or self.root)

    def _listing(self, handset: Handset, folder: str) -> Page:
        rows = [self._row(handset, path) for path in self._shown(handset, folder)]
        bottom = [] if handset.picked else self.bottom(handset, folder)
        return Page(
            title=self._title(folder),
            rows=rows or [ui.text_row("No items")],
            top=self._bar(handset, folder),
            bottom=bottom,
        )

    def _title(self, folder: str) -> str:
        return self.title if folder == self.root else name(folder)

    def _shown(self, handset: Handset, folder: str) -> list[str]:
        """The paths in a folder that the list shows: folders first, then files."""
        paths = handset.files.children(folder)
        files = [path for path in paths if handset.files.is_file(path)]
        shown = [path for path in files if path.endswith(self.suffixes or "")]
        return [*filter(handset.files.is_folder, paths), *shown]

    def _row(self, handset: Handset, path: str) -> Widget:
        pick = Call(_pick, path)
        if handset.picked:
            return ui.checkbox(name(path), path in handset.picked, pick)
        entry = handset.files.entries[path]
        when = f"{datetime.fromtimestamp(entry.time, UTC):%Y-%m-%d %H:%M}"
        if entry.data is None:
            return ui.item(name(path), "Folder", ui.open_screen(self.app, "list", path), pick)
        return ui.item(name(path), when, Call(self.open, path), pick)

    def _bar(self, handset: Handset, folder: str) -> list[Line]:
        """Buttons for the ticked files."""
        count = len(handset.picked)
        if not count:
            return []
        below = self.root if folder.startswith(self.root) else folder
        draft = {"name": name(min(handset.picked))}
        rename = ui.button("Rename", ui.open_screen(self.app, "rename", folder, draft=draft))
        delete = ui.button("Delete", ui.open_screen(self.app, "delete"))
        every = ui.button("Select all", Call(_pick_all, self._shown(handset, folder)))
        move = ui.button("Move", ui.open_screen(self.app, "move", below))
        copy = ui.button("Copy", ui.open_screen(self.app, "copy", below))
        first = (delete, every, rename) if count == 1 else (delete, every)
        return [ui.text_row(f"{count} selected"), first, (move, copy)]

    def _target(self, handset: Handset, screen: Screen) -> Page:
        """The page on which a target folder is chosen: its subfolders, and a button to take it."""
        folder = screen.of
        rows = [
            ui.item(name(path), "Folder", ui.open_screen(self.app, screen.kind, path))
            for path in filter(handset.files.is_folder, handset.files.children(folder))
        ]
        take = ui.button(f"{screen.kind.capitalize()} here", Call(_put, screen.kind, folder))
        return Page(title=self._title(folder), rows=rows, bottom=[take])


def _pick(handset: Handset, path: str) -> None:
    handset.picked = handset.picked ^ {path}


def _pick_all(handset: Handset, paths: Iterable[str]) -> None:
    handset.picked = frozenset(paths)


def _delete(handset: Handset) -> str:
    for path in handset.picked:
        handset.files.remove(path)
    handset.picked = frozenset()
    handset.back()
    return "Deleted"


def _rename(handset: Handset, folder: str) -> str:
    typed, old = ui.typed_file_name(handset), min(handset.picked)
    if not typed:
        return "Invalid name"
    new = f"{folder}/{typed}"
    if handset.files.get(new) is not None:
        return "File already exists"
    handset.files.copy(old, new)
    handset.files.remove(old)
    handset.picked = frozenset()
    handset.back()
    return "Renamed"


def _put(handset: Handset, kind: str, to: str) -> str:
    """Move or copy the ticked files into a folder and return to the list."""
    for path in sorted(handset.picked):
        target = f"{to}/{name(path)}"
        if handset.files.get(target) is not None or to == path or to.startswith(path + "/"):
            return "It is there already"
        handset.files.copy(path, target)
        if kind == "move":
            handset.files.remove(path)
    handset.picked = frozenset()
    stack = handset.stack
    while stack and stack[-1].kind == kind:
        stack = stack[:-1]
    handset.show(stack)
    return "Moved" if kind == "move" else "Copied"


# -- Files and Simple Gallery ----------------------------------------------------------------------

PICTURES = (".jpg", ".jpeg", ".png", ".svg", ".gif", ".mp4")


DEVICE = "sdk_gphone_x86_64"


def _storage(handset: Handset) -> Page:
    downloads = ui.open_screen("files", "list", f"{SHARED}/Download")
    storage = ui.open_screen("files", "list", SHARED)
    rows = [ui.item(DEVICE, "Storage", storage), ui.item("Downloads", "Folder", downloads)]
    return Page(title="Files", rows=rows)


def _picture_folders(handset: Handset) -> Page:
    folders = {
        path.rpartition("/")[0]
        for path in handset.files.entries
        if path.startswith(SHARED + "/") and path.endswith(PICTURES)
    }
    rows = [
        ui.item(name(path), "Folder", ui.open_screen("simple gallery pro", "list", path))
        for path in sorted(folders)
    ]
    return Page(title="Gallery", rows=rows or [ui.text_row("No media files have been found.")])


FILES = AppSpec(
    "files", "com.google.android.documentsui", "com.android.documentsui.files.FilesActivity",
    FileBrowser(app="files", root=SHARED, title=DEVICE, home=_storage).page,
)  # fmt: skip
GALLERY = AppSpec(
    "simple gallery pro", "com.simplemobiletools.gallery.pro",
    "com.simplemobiletools.gallery.pro.activities.MainActivity",
    FileBrowser(
        app="simple gallery pro", root=SHARED, title="Internal", suffixes=PICTURES,
        home=_picture_folders,
    ).page,
)  # fmt: skip


# -- Markor: notes as files in a folder of the shared storage --------------------------------------

NOTES = f"{SHARED}/Documents/Markor"
KINDS = {"Markdown (.md)": ".md", "Plain text (.txt)": ".txt", "No extension": ""}


def _open_note(handset: Handset, path: str) -> None:
    text = handset.files.read(path).decode("utf-8", "replace")
    handset.show((*handset.stack, Screen("markor", "edit", path)), {"text": text})


def _bottom(handset: Handset, folder: str) -> list[Line]:
    create = ui.open_screen("markor", "create", folder, draft={"kind": next(iter(KINDS))})
    return [ui.icon("Create a new file or folder", create)]


NOTE_BROWSER = FileBrowser(
    app="markor", root=NOTES, title="Markor", open=_open_note, bottom=_bottom
)


def _markor(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "edit":
        text = ui.field(handset, "Text", "text", multiline=True)
        return Page(title=name(screen.of), rows=[text], top=[ui.icon("Save", _save_note)])
    if screen.kind == "create":
        kinds = ui.options(handset, "kind", KINDS, next(iter(KINDS)))
        buttons = (
            ui.button("Folder", Call(_create_note, screen.of, True)),
            ui.button("Cancel", Back()),
            ui.button("OK", Call(_create_note, screen.of, False)),
        )
        name_field = ui.field(handset, "Name", "name")
        return Page(title="Create new document", rows=[name_field, *kinds, buttons])
    return NOTE_BROWSER.page(handset, screen)


def _create_note(handset: Handset, folder: str, as_folder: bool) -> str:
    typed = ui.typed_file_name(handset)
    if not typed:
        return "Invalid name"
    if not as_folder and not typed.endswith((".md", ".txt")):
        typed += KINDS[handset.draft["kind"]]
    path = f"{folder}/{typed}"
    if handset.files.get(path) is not None:
        return "File already exists"
    handset.back()
    if as_folder:
        handset.files.make(path)
    else:
        handset.files.make(folder)
        handset.files.write(path, b"")
        _open_note(handset, path)
    return ""


def _save_note(handset: Handset) -> str:
    _write_typed_text(handset, handset.stack[-1])
    return "Saved"


def _write_typed_text(handset: Handset, screen: Screen) -> None:
    """Write the typed text, unless the file is gone or has this text already."""
    if screen.kind != "edit" or not handset.files.is_file(screen.of):
        return
    data = handset.draft.get("text", "").encode()
    if data != handset.files.read(screen.of):
        handset.files.write(screen.of, data)


MARKOR = AppSpec(
    "markor", "net.gsantner.markor", "net.gsantner.markor.activity.MainActivity", _markor,
    folders=(NOTES,),
    on_leave=_write_typed_text,
)  # fmt: skip
