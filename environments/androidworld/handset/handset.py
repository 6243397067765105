"""The simulated handset: a phone with files, settings, packages and a clock.

:class:`Handset` extends :class:`~swarm_ui.environments.phone.state.Device`, which has the form,
the screen stack and the toast. An :class:`AppSpec` describes an app: its screens over its
databases and files, under the package name of an app that android_world's tasks use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from swarm_ui.environments.androidworld.handset.file_system import (
    Database,
    FileSystem,
    canonical,
    parent,
)
from swarm_ui.environments.phone.state import Device, Effect, Path, Row, Screen, Widget

START = int(datetime(2023, 10, 15, 15, 34, tzinfo=UTC).timestamp())
"""Time of a new device, in seconds since 1970."""
FOLDERS = (
    "Alarms", "Audiobooks", "DCIM", "Documents", "Download", "Movies", "Music", "Notifications",
    "Pictures", "Podcasts", "Recordings", "Ringtones", "Android/data",
)  # fmt: skip
"""Folders of the shared storage."""
HOME = "com.google.android.apps.nexuslauncher/.NexusLauncherActivity"


class Control(Widget, frozen=True, gc=False):
    """A widget with Android's further kinds of touch."""

    long_press: Effect | None = None
    multiline: bool = False
    """The text field accepts line breaks."""


Line = Widget | tuple[Widget, ...]
"""A row of the screen: one widget, or several side by side."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a screen before layout."""

    title: str
    rows: Sequence[Line]
    """The list between ``top`` and ``bottom``. It scrolls if it is too long."""
    top: Sequence[Line] = ()
    bottom: Sequence[Line] = ()


class AppSpec(msgspec.Struct, frozen=True):
    """An app of the handset."""

    name: str
    """Name under the icon, and ``Screen.app`` of its screens."""
    package: str
    activity: str
    build: Callable[[Handset, Screen], Page]
    databases: tuple[Database, ...] = ()
    settings: Mapping[str, str] = {}
    """Keys of the device's settings that belong to the app, with their initial values."""
    providers: tuple[str, ...] = ()
    """Packages of content providers that share the app's data."""
    folders: tuple[str, ...] = ()
    """Folders that the installation creates."""
    on_leave: Callable[[Handset, Screen], None] | None = None
    """Called before one of the app's screens is left."""
    intents: Mapping[str, Callable[[Handset, Intent], None]] = {}
    """``"ACTION TYPE"`` or ``"ACTION ADDRESS"`` -> the function that answers this intent."""

    @property
    def component(self) -> str:
        return f"{self.package}/{self.activity}"


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """The message of ``am start`` and ``am broadcast``."""

    action: str = ""
    component: str = ""
    data: str = ""
    mime: str = ""
    extras: Mapping[str, str] = {}


class Call:
    """An effect that calls a function with the handset and some arguments. A returned text is shown
    as a toast."""

    def __init__(self, function: Callable[..., object], *given: object) -> None:
        self._function, self._given = function, given

    def apply(self, device: Device) -> str:
        toast = self._function(device, *self._given)
        if isinstance(toast, str) and toast:
            device.toast = toast
        return ""


class Handset(Device):
    """A phone that accepts adb commands. Its values are replaced, never changed in place."""

    def __init__(self, apps: Sequence[AppSpec]) -> None:
        super().__init__(tuple(app.name for app in apps))
        self.apps: Mapping[str, AppSpec] = {app.name: app for app in apps}
        self.now = START
        """Seconds since 1970. Each touch and each key adds a second; nothing else does."""
        self.namespaces: Mapping[str, Mapping[str, str]] = {
            "system": {}, "secure": {}, "global": {},
        }  # fmt: skip
        self.clipboard = ""
        self.focus = ""
        """Field that the keyboard types into; empty: no keyboard is shown."""
        self.selecting = False
        """Whether the text of the focused field is selected and the bar with cut, copy and paste is
        shown."""
        self.picked: frozenset[str] = frozenset()
        """Files that are ticked in a file list."""
        self.covered: Mapping[Path, tuple[int, Row]] = {}
        """Scroll page and form of each screen below the current one."""
        self.recents: tuple[str, ...] = ()
        """Names of the opened apps, the last one first."""
        self.files = FileSystem(lambda: self.now)
        for folder in FOLDERS:
            self.files.make(f"/sdcard/{folder}")
        for path in ("/data/data", "/data/local/tmp"):
            self.files.make(path)
        for app in apps:
            self.settings = {**self.settings, **app.settings}
            self.files.make(f"/data/data/{app.package}")
            for folder in app.folders:
                self.files.make(folder)
            self.create_databases(app)

    def create_databases(self, app: AppSpec) -> None:
        """Create the missing database files of an app."""
        for database in app.databases:
            if self.files.get(database.path) is None:
                self.files.make(parent(database.path))
                self.files.write(database.path, database.empty())

    @property
    def front_app(self) -> AppSpec | None:
        """The foreground app; ``None`` on the home screen."""
        return self.apps[self.stack[0].app] if self.stack else None

    @property
    def component(self) -> str:
        """Package and activity in the foreground."""
        return self.front_app.component if self.front_app else HOME

    def package(self, package: str) -> AppSpec | None:
        """The app with this package name, or the app whose data this package provides; ``None``
        if there is none."""
        for app in self.apps.values():
            if package == app.package or package in app.providers:
                return app
        return None

    def page_of(self, screen: Screen) -> Page:
        """The content of a screen. If its record was removed over adb, the screen says so."""
        try:
            return self.apps[screen.app].build(self, screen)
        except KeyError as error:
            if not screen.row or error.args != (screen.row,):
                raise
        return Page(title=screen.app, rows=[Control("text", "No longer there")])

    def show(self, stack: Path, draft: Row | None = None) -> None:
        """Replace the screen stack. A screen that was covered keeps its form and scroll page."""
        if self.stack:
            top = self.stack[-1]
            on_leave = self.apps[top.app].on_leave
            if on_leave is not None:
                on_leave(self, top)
        covered = {**self.covered, self.stack: (self.page, self.draft)}
        uncovered = len(stack) < len(self.stack) and self.stack[: len(stack)] == stack
        page, before = covered.get(stack, (0, {})) if uncovered else (0, {})
        if stack[:1] != self.stack[:1]:
            self.picked = frozenset()
        super().show(stack, before if draft is None else draft)
        self.focus = ""
        self.selecting = False
        self.page = page
        self.covered = {path: kept for path, kept in covered.items() if path == stack[: len(path)]}

    def open(
        self, kind: str, of: str = "", row: int = 0, draft: Mapping[str, str] | None = None
    ) -> None:
        """Put a screen of the foreground app on top, with a form that is filled from ``draft``."""
        self.show((*self.stack, Screen(self.stack[0].app, kind, of, row)), draft or {})

    def switch(self, kind: str, of: str = "") -> None:
        """Put a screen in place of those of the foreground app."""
        self.show((Screen(self.stack[0].app, kind, of),))

    def launch(self, name: str) -> None:
        """Open an app at its first screen."""
        self.create_databases(self.apps[name])
        self.recents = (name, *(other for other in self.recents if other != name))
        self.show((Screen(name),))

    def close(self, name: str) -> None:
        """End an app. If it was in the foreground, the home screen replaces it."""
        self.recents = tuple(other for other in self.recents if other != name)
        if self.stack and self.stack[0].app == name:
            self.show(())

    def clear(self, app: AppSpec) -> None:
        """End an app and reset its data to those of a new installation."""
        self.close(app.name)
        for database in app.databases:
            self.files.remove(database.path)
        self.settings = {**self.settings, **app.settings}
        self.create_databases(app)

    def database(self, path: str) -> Database | None:
        """The database whose file has this path."""
        found = (database for app in self.apps.values() for database in app.databases)
        return next((one for one in found if one.path == canonical(path)), None)

    def when(self) -> datetime:
        """Date and time of the device."""
        return datetime.fromtimestamp(self.now, UTC)
