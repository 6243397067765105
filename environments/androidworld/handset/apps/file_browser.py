"""Lists of files: open, tick with a long press, then delete, rename, move or copy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import msgspec

from swarm_ui.environments.androidworld.handset.errors import AdbFailure
from swarm_ui.environments.androidworld.handset.file_system import name
from swarm_ui.environments.androidworld.handset.handset import Control, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen.widgets import (
    button,
    dialog,
    do,
    drop,
    field,
    go,
    item,
    told,
)
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget


class Browser(msgspec.Struct, frozen=True, kw_only=True):
    """How an app shows files; its screens have the folder's path in ``of``."""

    app: str
    root: str
    """Folder that moving and copying begin at."""
    title: str
    """What the root is called."""
    suffixes: tuple[str, ...] = ()
    """Kinds of files it shows; empty: all."""
    open: Callable[[Handset, str], object]
    """Called with the handset and a file's path."""
    bottom: Callable[[Handset, str], list[Line]] = lambda handset, folder: []

    def page(self, handset: Handset, screen: Screen) -> Page:
        """Any of the screens that deal with files."""
        if screen.kind == "delete":
            what = self._told(handset)
            return dialog("Delete", f"Delete {what}?", "OK", do(_delete))
        if screen.kind == "rename":
            rows: list[Line] = [field(handset, "Name", "name")]
            ok = button("OK", do(partial(_rename, folder=screen.of)))
            return Page(title="Rename", rows=[*rows, (button("Cancel", do(_leave)), ok)])
        if screen.kind in ("move", "copy"):
            return self._target(handset, screen)
        return self.listing(handset, screen.of or self.root)

    def listing(self, handset: Handset, folder: str) -> Page:
        picking = bool(handset.picked)
        rows: list[Widget] = [
            self._row(handset, path, picking) for path in self._shown(handset, folder)
        ]
        if not rows:
            rows = [told("No items")]
        title = self.title if folder == self.root else name(folder)
        bottom = [] if picking else self.bottom(handset, folder)
        return Page(title=title, rows=rows, top=self._bar(handset, folder), bottom=bottom)

    def _shown(self, handset: Handset, folder: str) -> list[str]:
        paths = handset.files.children(folder)
        folders = [path for path in paths if handset.files.is_folder(path)]
        files = [path for path in paths if handset.files.is_file(path)]
        if self.suffixes:
            files = [path for path in files if path.endswith(self.suffixes)]
        return [*folders, *files]

    def _row(self, handset: Handset, path: str, picking: bool) -> Widget:
        pick = do(partial(_pick, path=path))
        if picking:
            return Control("checkbox", name(path), None, path in handset.picked, pick, hold=pick)
        entry = handset.files.entries[path]
        when = f"{datetime.fromtimestamp(entry.time, UTC):%Y-%m-%d %H:%M}"
        if entry.data is None:
            return item(name(path), "Folder", go(Screen(self.app, "list", path)), pick)
        return item(name(path), when, do(lambda handset: self.open(handset, path)), pick)

    def _bar(self, handset: Handset, folder: str) -> list[Line]:
        """What can be done with the ticked files."""
        count = len(handset.picked)
        if not count:
            return []
        below = self.root if folder.startswith(self.root) else folder
        every = do(partial(_pick_all, paths=tuple(self._shown(handset, folder))))
        draft = {"name": name(min(handset.picked))}
        one = (
            (button("Rename", go(Screen(self.app, "rename", folder), draft)),) if count == 1 else ()
        )
        return [
            told(f"{count} selected"),
            (button("Delete", go(Screen(self.app, "delete"))), button("Select all", every), *one),
            (
                button("Move", go(Screen(self.app, "move", below))),
                button("Copy", go(Screen(self.app, "copy", below))),
            ),
        ]

    def _target(self, handset: Handset, screen: Screen) -> Page:
        """Where to: folders to go into, and a button to take the one shown."""
        folder = screen.of
        inside = [path for path in handset.files.children(folder) if handset.files.is_folder(path)]
        rows: list[Widget] = [
            item(name(path), "Folder", go(Screen(self.app, screen.kind, path))) for path in inside
        ]
        title = self.title if folder == self.root else name(folder)
        take = button(
            f"{screen.kind.capitalize()} here", do(partial(_put, kind=screen.kind, to=folder))
        )
        return Page(title=title, rows=rows, bottom=[take])

    def _told(self, handset: Handset) -> str:
        count = len(handset.picked)
        return name(min(handset.picked)) if count == 1 else f"{count} items"


def _leave(handset: Handset) -> None:
    handset.back()


def _pick(handset: Handset, path: str) -> None:
    handset.picked = handset.picked ^ {path}


def _pick_all(handset: Handset, paths: tuple[str, ...]) -> None:
    handset.picked = frozenset(paths)


def _delete(handset: Handset) -> None:
    for path in handset.picked:
        handset.delete(path)
    handset.picked = frozenset()
    drop(handset, 1, "Deleted")


def _rename(handset: Handset, folder: str) -> str:
    wanted = handset.draft.get("name", "").strip()
    old = min(handset.picked)
    new = f"{folder}/{wanted}"
    if not wanted or "/" in wanted:
        handset.toast = "Invalid name"
        return "not renamed: invalid name"
    if new != old and handset.files.get(new) is not None:
        handset.toast = "File already exists"
        return "not renamed: a file has that name"
    handset.files = handset.files.move(old, new)
    handset.picked = frozenset()
    drop(handset, 1, "Renamed")
    return ""


def _put(handset: Handset, kind: str, to: str) -> str:
    """Move or copy the ticked files into a folder, and go back to the list."""
    try:
        for path in sorted(handset.picked):
            target = f"{to}/{name(path)}"
            if handset.files.get(target) is not None or to == path or to.startswith(path + "/"):
                handset.toast = "It is there already"
                return "not done: it is there already"
            if kind == "move":
                handset.files = handset.files.move(path, target)
            else:
                _copy(handset, path, target)
    except AdbFailure as error:
        handset.toast = "It did not work"
        return str(error)
    handset.picked = frozenset()
    stack = handset.stack
    while stack and stack[-1].kind == kind:
        stack = stack[:-1]
    handset.show(stack)
    handset.toast = "Moved" if kind == "move" else "Copied"
    return ""


def _copy(handset: Handset, source: str, target: str) -> None:
    for path in list(handset.files.walk(source)):
        place = target + path[len(source) :]
        if handset.files.is_folder(path):
            handset.make_folder(place)
        else:
            handset.write(place, handset.read(path))
