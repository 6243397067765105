"""Lists of files. A long press ticks a file; ticked files can be deleted, moved and copied."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import msgspec

from swarm_ui.environments.androidworld.handset.errors import AdbFailure
from swarm_ui.environments.androidworld.handset.file_system import name
from swarm_ui.environments.androidworld.handset.handset import Call, Control, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
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
    open: Callable[[Handset, str], object]
    """Called with the handset and a file's path."""
    bottom: Callable[[Handset, str], list[Line]] = lambda handset, folder: []

    def page(self, handset: Handset, screen: Screen) -> Page:
        """The page of a file screen: the list, a dialog or form about ticked files, or the choice
        of a target folder."""
        if screen.kind == "delete":
            count = len(handset.picked)
            what = name(min(handset.picked)) if count == 1 else f"{count} items"
            return ui.dialog("Delete", f"Delete {what}?", "OK", Call(_delete))
        if screen.kind == "rename":
            rows: list[Line] = [ui.field(handset, "Name", "name")]
            ok = ui.button("OK", Call(partial(_rename, folder=screen.of)))
            return Page(title="Rename", rows=[*rows, (ui.button("Cancel", Back()), ok)])
        if screen.kind in ("move", "copy"):
            return self._target(handset, screen)
        return self.listing(handset, screen.of or self.root)

    def listing(self, handset: Handset, folder: str) -> Page:
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
        pick = Call(partial(_pick, path=path))
        if handset.picked:
            ticked = path in handset.picked
            return Control("checkbox", name(path), None, ticked, pick, long_press=pick)
        entry = handset.files.entries[path]
        when = f"{datetime.fromtimestamp(entry.time, UTC):%Y-%m-%d %H:%M}"
        if entry.data is None:
            return ui.item(name(path), "Folder", ui.open_screen(self.app, "list", path), pick)
        return ui.item(name(path), when, Call(lambda handset: self.open(handset, path)), pick)

    def _bar(self, handset: Handset, folder: str) -> list[Line]:
        """Buttons for the ticked files."""
        count = len(handset.picked)
        if not count:
            return []
        below = self.root if folder.startswith(self.root) else folder
        every = Call(partial(_pick_all, paths=tuple(self._shown(handset, folder))))
        draft = {"name": name(min(handset.picked))}
        rename = ui.button("Rename", ui.open_screen(self.app, "rename", folder, draft=draft))
        delete = ui.button("Delete", ui.open_screen(self.app, "delete"))
        move = ui.button("Move", ui.open_screen(self.app, "move", below))
        copy = ui.button("Copy", ui.open_screen(self.app, "copy", below))
        buttons = (delete, ui.button("Select all", every))
        return [
            ui.text_row(f"{count} selected"),
            (*buttons, rename) if count == 1 else buttons,
            (move, copy),
        ]

    def _target(self, handset: Handset, screen: Screen) -> Page:
        """The page on which a target folder is chosen: its subfolders, and a button to take it."""
        folder = screen.of
        rows = [
            ui.item(name(path), "Folder", ui.open_screen(self.app, screen.kind, path))
            for path in filter(handset.files.is_folder, handset.files.children(folder))
        ]
        put = Call(partial(_put, kind=screen.kind, to=folder))
        take = ui.button(f"{screen.kind.capitalize()} here", put)
        return Page(title=self._title(folder), rows=rows, bottom=[take])


def _pick(handset: Handset, path: str) -> None:
    handset.picked = handset.picked ^ {path}


def _pick_all(handset: Handset, paths: tuple[str, ...]) -> None:
    handset.picked = frozenset(paths)


def _delete(handset: Handset) -> str:
    for path in handset.picked:
        handset.delete(path)
    handset.picked = frozenset()
    handset.back()
    return "Deleted"


def _rename(handset: Handset, folder: str) -> str:
    typed, old = ui.typed_file_name(handset), min(handset.picked)
    if not typed:
        return "Invalid name"
    new = f"{folder}/{typed}"
    if new != old and handset.files.get(new) is not None:
        return "File already exists"
    handset.files = handset.files.move(old, new)
    handset.picked = frozenset()
    handset.back()
    return "Renamed"


def _put(handset: Handset, kind: str, to: str) -> str:
    """Move or copy the ticked files into a folder and return to the list."""
    try:
        for path in sorted(handset.picked):
            target = f"{to}/{name(path)}"
            if handset.files.get(target) is not None or to == path or to.startswith(path + "/"):
                return "It is there already"
            if kind == "move":
                handset.files = handset.files.move(path, target)
            else:
                handset.copy(path, target)
    except AdbFailure:
        return "It did not work"
    handset.picked = frozenset()
    stack = handset.stack
    while stack and stack[-1].kind == kind:
        stack = stack[:-1]
    handset.show(stack)
    return "Moved" if kind == "move" else "Copied"
