"""The embedded phone with what Google's tools expect around it: files, settings, packages, a clock.

A :class:`Handset` is a :class:`~swarm_ui.environments.phone.device.device.Device`: the same
tables, form,
screen stack and toast. Its apps are *editions*: screens over the phone's tables that bear the
package names and keep the files of the apps that android_world's tasks are about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from swarm_ui.environments.androidworld.handset.databases import Database
from swarm_ui.environments.androidworld.handset.errors import AdbFailure
from swarm_ui.environments.androidworld.handset.file_system import Entry, Files, canonical, parent
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Effect, Widget
from swarm_ui.errors import ConfigError

START = int(datetime(2023, 10, 15, 15, 34, tzinfo=UTC).timestamp())
"""What the clock shows on a new device."""
FOLDERS = (
    "Alarms", "Audiobooks", "DCIM", "Documents", "Download", "Movies", "Music", "Notifications",
    "Pictures", "Podcasts", "Recordings", "Ringtones", "Android/data",
)  # fmt: skip
"""Folders of the shared storage."""
HOME = "com.google.android.apps.nexuslauncher/.NexusLauncherActivity"


class Control(Widget, frozen=True, gc=False):
    """A widget with what a person can do to it on Android beyond a tap."""

    hold: Effect | None = None
    """What a long press does."""
    lines: bool = False
    """A field that takes more than one line."""
    slider: Callable[[Handset, float], None] | None = None
    """What a touch at a share of its width does."""
    quiet: bool = False
    """Nothing happens when it is touched: text to read."""


Line = Widget | tuple[Widget, ...]
"""A row of the screen: one widget, or several side by side."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A screen before it is laid out."""

    title: str
    rows: Sequence[Line]
    """What scrolls if it is too long."""
    top: Sequence[Line] = ()
    bottom: Sequence[Line] = ()


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """An app as android_world's tasks know it."""

    app: str
    """Name in the addresses of its screens, and under its icon."""
    package: str
    activity: str
    build: Callable[[Handset, Screen], Page]
    databases: tuple[Database, ...] = ()
    data: tuple[str, ...] = ()
    """Tables of the phone that its data are, where they are not those of its databases."""
    settings: Mapping[str, str] = {}
    """Keys it keeps in the device's settings, and what they are at first."""
    providers: tuple[str, ...] = ()
    """Other packages whose data are its data."""
    folders: tuple[str, ...] = ()
    """Folders that exist once it is installed."""
    leave: Callable[[Handset, Screen], None] | None = None
    """What happens before one of its screens is left."""
    pages: Callable[[Handset], int] | None = None
    """Pages of the screen in front, if the app itself divides its lists."""
    intents: Mapping[str, Callable[[Handset, Intent], None]] = {}
    """Action -> what it does when an activity is started for it."""

    @property
    def component(self) -> str:
        return f"{self.package}/{self.activity}"


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What ``am start`` and ``am broadcast`` send."""

    action: str = ""
    component: str = ""
    data: str = ""
    mime: str = ""
    extras: Mapping[str, str] = {}


class Do(msgspec.Struct, frozen=True, gc=False):
    """A tap that runs a function on the handset; the function may return a note."""

    run: Callable[[Handset], object]

    def apply(self, device: Device) -> str:
        note = self.run(of(device))
        return note if isinstance(note, str) else ""


class Handset(Device):
    """A phone that adb can talk to. Everything it holds is replaced, never changed in place."""

    __slots__ = (
        "call",
        "clipboard",
        "covered",
        "editions",
        "files",
        "namespaces",
        "now",
        "picked",
        "recents",
        "selecting",
    )

    def __init__(self, editions: Sequence[Edition]) -> None:
        super().__init__(tuple(edition.app for edition in editions))
        self.editions: Mapping[str, Edition] = {edition.app: edition for edition in editions}
        if len(self.editions) != len(editions):
            raise ConfigError("two apps of a handset have the same name")
        self.now = START
        """Seconds since 1970. Every touch and key takes one; nothing else moves it."""
        self.namespaces: Mapping[str, Mapping[str, str]] = {
            "system": {},
            "secure": {},
            "global": {},
        }
        self.clipboard = ""
        self.selecting = False
        """The bar with cut, copy and paste is over the field in focus, its text selected."""
        self.picked: frozenset[str] = frozenset()
        """Files ticked in a file list."""
        self.covered: Mapping[Path, tuple[int, Row]] = {}
        """Screens below the one in front: how far each is scrolled, and its form."""
        self.recents: tuple[str, ...] = ()
        """Apps opened so far, the last one first."""
        self.call = ""
        """Number of the call that comes in or goes on; empty: none."""
        self.files = Files({})
        for folder in FOLDERS:
            self.make_folder(f"/sdcard/{folder}")
        for path in ("/data/data", "/data/local/tmp"):
            self.make_folder(path)
        for edition in editions:
            self._install(edition)

    def clone(self) -> Handset:
        """An independent copy."""
        copy = Handset.__new__(Handset)
        for kind in (Device, Handset):
            for slot in kind.__slots__:
                setattr(copy, slot, getattr(self, slot))
        return copy

    def _install(self, edition: Edition) -> None:
        self.settings = {**self.settings, **edition.settings}
        for name in edition.data:
            self.tables = {**self.tables, name: {}}
        self.make_folder(f"/data/data/{edition.package}")
        for folder in edition.folders:
            self.make_folder(folder)
        self.create_databases(edition)

    def create_databases(self, edition: Edition) -> None:
        """Make the app's missing database files, as it does itself when it is opened."""
        for database in edition.databases:
            if self.files.get(database.path) is None:
                self.make_folder(parent(database.path))
                self.files = self.files.write(database.path, b"", self.now)
                for table in database.tables:
                    if table.of and table.of not in self.tables:
                        self.tables = {**self.tables, table.of: {}}

    @property
    def edition(self) -> Edition | None:
        """The app in front; ``None`` at home."""
        return self.editions[self.stack[0].app] if self.stack else None

    @property
    def component(self) -> str:
        """Package and activity in front."""
        return self.edition.component if self.edition else HOME

    def package(self, package: str) -> Edition | None:
        """The app of a package, or of a package that provides its data."""
        for edition in self.editions.values():
            if package == edition.package or package in edition.providers:
                return edition
        return None

    def page_of(self, screen: Screen) -> Page:
        return self.editions[screen.app].build(self, screen)

    def show(self, stack: Path, draft: Row | None = None) -> None:
        """Bring a screen to the front; one that was covered comes back scrolled as it was."""
        if self.stack:
            top = self.stack[-1]
            leave = self.editions[top.app].leave
            if leave is not None:
                leave(self, top)
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

    def launch(self, app: str) -> None:
        """Open an app at its first screen."""
        self.create_databases(self.editions[app])
        self.recents = (app, *(other for other in self.recents if other != app))
        self.show((Screen(app),))

    def close(self, app: str) -> None:
        """End an app; the home screen comes to the front if it was there."""
        self.recents = tuple(other for other in self.recents if other != app)
        if self.stack and self.stack[0].app == app:
            self.show(())

    def clear(self, edition: Edition) -> None:
        """Forget an app's data, as if it were newly installed."""
        self.close(edition.app)
        for database in edition.databases:
            database.clear(self)
        for name in edition.data:
            self.tables = {**self.tables, name: {}}
        self.settings = {**self.settings, **edition.settings}
        self.create_databases(edition)

    def read(self, path: str) -> bytes:
        """Contents of a file.

        Raises:
            AdbFailure: there is no such file.
        """
        place = canonical(path)
        entry = self.files.get(place)
        if entry is None:
            raise AdbFailure(f"{path}: No such file or directory")
        if entry.data is None:
            raise AdbFailure(f"{path}: Is a directory")
        database = self.database(place)
        return database.dump(self) if database else entry.data

    def write(self, path: str, data: bytes) -> None:
        """Make or replace a file.

        Raises:
            AdbFailure: its folder does not exist, or a database cannot be loaded.
        """
        place = canonical(path)
        database = self.database(place)
        if database is not None:
            database.load(self, data)
            data = b""
        self.files = self.files.write(place, data, self.now)

    def delete(self, path: str) -> None:
        """Remove a file, or a folder and all it holds."""
        place = canonical(path)
        for edition in self.editions.values():
            for database in edition.databases:
                if database.path == place or database.path.startswith(place + "/"):
                    database.clear(self)
        self.files = self.files.remove(place)

    def make_folder(self, path: str) -> None:
        self.files = self.files.make(canonical(path), self.now, parents=True)

    def entry(self, path: str) -> Entry | None:
        return self.files.get(canonical(path))

    def database(self, place: str) -> Database | None:
        """The database whose file is at a canonical path."""
        for edition in self.editions.values():
            for database in edition.databases:
                if database.path == place:
                    return database
        return None

    def when(self) -> datetime:
        """Date and time that the device shows."""
        return datetime.fromtimestamp(self.now, UTC)


def of(device: Device) -> Handset:
    """The handset that an effect is applied to."""
    if not isinstance(device, Handset):
        raise ConfigError(
            "this app needs a Handset; a plain phone device has no files and settings"
        )
    return device
