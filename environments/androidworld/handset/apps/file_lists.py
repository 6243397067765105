"""Files, Simple Gallery and Markor: lists of files. A long press ticks a file; ticked files can be
deleted, moved, copied and renamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name, parent
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.phone.state import Screen, Widget


class FileBrowser(msgspec.Struct, frozen=True, kw_only=True):
    """The file screens of an app. ``Screen.of`` is the path of the folder."""

    root: str
    """Folder in which the choice of a target begins."""
    title: str
    """Title of the root."""
    suffixes: tuple[str, ...] = ()
    """Suffixes of the shown files. Empty: all files."""
    open: Callable[[Handset, str], object] = lambda handset, path: "No app shows this file"
    """Called with the handset and a file's path. A text is shown as a toast."""
    bottom: Callable[[str], list[Line]] = lambda folder: []
    home: Callable[[Handset], Page] | None = None
    """The first screen; ``None``: the root."""

    def page(self, handset: Handset, screen: Screen) -> Page:
        """The list of a folder, the choice of a target folder, or a dialog about ticked files."""
        folder, picked = screen.of or self.root, handset.picked
        rows, top = list[Line](), list[Line]()
        title = self.title if folder == self.root else name(folder)
        if screen.kind == "delete":
            what = name(min(picked)) if len(picked) == 1 else f"{len(picked)} items"
            return ui.delete_page(what, ui.answers(_delete))
        if screen.kind == "rename":
            rows += [ui.field(handset, "Name", "name"), ui.answers(Call(_rename, folder))]
            return Page(title="Rename", rows=rows)
        children = handset.files.children(folder)
        folders = list(filter(handset.files.is_folder, children))
        if screen.kind in ("move", "copy"):
            rows += [ui.item(name(path), "Folder", ui.go(screen.kind, path)) for path in folders]
            take = Call(_put, screen.kind, folder)
            here = ui.button(f"{screen.kind.capitalize()} here", take)
            return Page(title=title, rows=rows, bottom=[here])
        if self.home is not None and not screen.of:
            return self.home(handset)
        files = filter(handset.files.is_file, children)
        shown = [*folders, *(path for path in files if path.endswith(self.suffixes or ""))]
        if picked:
            delete = ui.button("Delete", ui.go("delete"))
            buttons = [delete, ui.button("Select all", Call(_pick_all, shown))]
            if len(picked) == 1:
                draft = {"name": name(min(picked))}
                buttons.append(ui.button("Rename", ui.go("rename", folder, draft=draft)))
            below = self.root if folder.startswith(self.root) else folder
            put = [ui.button(kind.capitalize(), ui.go(kind, below)) for kind in ("move", "copy")]
            top = [ui.text_row(f"{len(picked)} selected"), tuple(buttons), tuple(put)]
        return Page(
            title=title,
            rows=ui.rows_or("No items", [self._row(handset, path) for path in shown]),
            top=top,
            bottom=[] if picked else self.bottom(folder),
        )

    def _row(self, handset: Handset, path: str) -> Widget:
        pick = Call(_pick, path)
        if handset.picked:
            return ui.checkbox(name(path), path in handset.picked, pick)
        entry = handset.files.entries[path]
        if entry.data is None:
            return ui.item(name(path), "Folder", ui.go("list", path), pick)
        when = f"{datetime.fromtimestamp(entry.time, UTC):%Y-%m-%d %H:%M}"
        return ui.item(name(path), when, Call(self.open, path), pick)


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
    downloads = ui.item("Downloads", "Folder", ui.go("list", f"{SHARED}/Download"))
    return Page(title="Files", rows=[ui.item(DEVICE, "Storage", ui.go("list", SHARED)), downloads])


def _picture_folders(handset: Handset) -> Page:
    shared = (path for path in handset.files.entries if path.startswith(SHARED + "/"))
    folders = sorted({parent(path) for path in shared if path.endswith(PICTURES)})
    rows = [ui.item(name(path), "Folder", ui.go("list", path)) for path in folders]
    return Page(title="Gallery", rows=ui.rows_or("No media files have been found.", rows))


FILES = AppSpec(
    "files", "com.google.android.documentsui", "com.android.documentsui.files.FilesActivity",
    FileBrowser(root=SHARED, title=DEVICE, home=_storage).page,
)  # fmt: skip
GALLERY = AppSpec(
    "simple gallery pro", "com.simplemobiletools.gallery.pro",
    "com.simplemobiletools.gallery.pro.activities.MainActivity",
    FileBrowser(root=SHARED, title="Internal", suffixes=PICTURES, home=_picture_folders).page,
)  # fmt: skip


# -- Markor: notes as files in a folder of the shared storage --------------------------------------

NOTES = f"{SHARED}/Documents/Markor"
KINDS = {"Markdown (.md)": ".md", "Plain text (.txt)": ".txt", "No extension": ""}


def _open_note(handset: Handset, path: str) -> None:
    handset.open("edit", path, draft={"text": handset.files.read(path).decode("utf-8", "replace")})


def _new_document(folder: str) -> list[Line]:
    create = ui.go("create", folder, draft={"kind": next(iter(KINDS))})
    return [ui.icon("Create a new file or folder", create)]


NOTE_BROWSER = FileBrowser(root=NOTES, title="Markor", open=_open_note, bottom=_new_document)


def _markor(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "edit":
        text = ui.field(handset, "Text", "text", multiline=True)
        return Page(title=name(screen.of), rows=[text], top=[ui.icon("Save", _save_note)])
    if screen.kind == "create":
        kinds = ui.options(handset, "kind", KINDS, next(iter(KINDS)))
        folder = ui.button("Folder", Call(_create_note, screen.of, True))
        buttons = ui.answers(Call(_create_note, screen.of, False), "OK", "Cancel", folder)
        named = ui.field(handset, "Name", "name")
        return Page(title="Create new document", rows=[named, *kinds, buttons])
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
