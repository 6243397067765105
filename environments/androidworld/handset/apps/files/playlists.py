"""Playlists of files, as Retro Music and VLC keep them.

On the screens that add files, ``Screen.of`` holds the paths of the files, one on each line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from swarm_ui.environments.androidworld.handset.handset import Call, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Row, Screen


class Playlists(msgspec.Struct, frozen=True, kw_only=True):
    """The screens with the playlists of an app, and those that add files to a playlist."""

    app: str
    lists: str
    """Table of the playlists. The field ``name`` is the name."""
    entries: str
    """Table of the files in them. The field ``list`` is the identity of the playlist."""
    entry: Callable[[Handset, str, int], Row]
    """Further fields of an entry, from the file's path and its place in the list."""
    name: Callable[[Handset, Row], str]
    """Text that the list shows of an entry."""
    bottom: Callable[[int], list[Line]] = lambda row: []
    """Further rows below a playlist with this identity."""

    def page(self, handset: Handset, screen: Screen) -> Page:
        lists = sorted(handset.tables[self.lists].items(), key=lambda pair: pair[1]["name"])
        if screen.kind == "add":
            new = ui.item("New playlist", None, ui.open_screen(self.app, "create", screen.of))
            rows = [
                ui.item(one["name"], None, Call(partial(self._add, paths=screen.of, row=k)))
                for k, one in lists
            ]
            return Page(title="Add to playlist", rows=[new, *rows])
        if screen.kind == "create":
            create = ui.button("Create", Call(partial(self._create, paths=screen.of)))
            name = ui.field(handset, "Playlist name", "name")
            return Page(title="New playlist", rows=[name, create])
        if screen.kind == "playlist":
            return self._playlist(handset, screen.row)
        if screen.kind == "drop":
            drop = Call(partial(self._drop, row=screen.row))
            name_of = handset.tables[self.lists][screen.row]["name"]
            return ui.dialog("Delete playlist", f"Delete {name_of}?", "Delete", drop)
        rows = [
            ui.item(one["name"], f"{len(self.files(handset, k))} files",
                    ui.open_screen(self.app, "playlist", row=k))
            for k, one in lists
        ]  # fmt: skip
        return Page(title="Playlists", rows=rows or [ui.text_row("No playlists")])

    def files(self, handset: Handset, row: int) -> list[Row]:
        """The entries of a playlist, in its order."""
        entries = handset.tables[self.entries].values()
        return [entry for entry in entries if entry["list"] == str(row)]

    def _playlist(self, handset: Handset, row: int) -> Page:
        names = [self.name(handset, entry) for entry in self.files(handset, row)]
        delete = ui.button("Delete", ui.open_screen(self.app, "drop", row=row))
        return Page(
            title=handset.tables[self.lists][row]["name"],
            rows=[ui.text_row(name) for name in names] or [ui.text_row("No files")],
            bottom=[*self.bottom(row), delete],
        )

    def _create(self, handset: Handset, paths: str) -> str:
        typed = ui.typed_file_name(handset)
        if not typed:
            return "Invalid name"
        return self._add(handset, paths, handset.insert(self.lists, {"name": typed}))

    def _add(self, handset: Handset, paths: str, row: int) -> str:
        """Add files and return to the list of all files."""
        start = len(self.files(handset, row))
        for place, path in enumerate(paths.split("\n"), start):
            handset.insert(self.entries, {"list": str(row), **self.entry(handset, path, place)})
        handset.show(tuple(screen for screen in handset.stack if screen.kind == "list"), {})
        return "Added to playlist"

    def _drop(self, handset: Handset, row: int) -> str:
        for key, entry in handset.tables[self.entries].items():
            if entry["list"] == str(row):
                handset.remove(self.entries, key)
        handset.remove(self.lists, row)
        handset.show(handset.stack[:-2])
        return "Playlist deleted"
