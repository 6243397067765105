"""The state of a simulated phone: screens, tables of records, widgets, apps, and the device itself.

The device knows no task. Containers are replaced and never changed in place, so that copies share
them and a copy takes a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self

import msgspec

from swarm_ui.observation import Role

if TYPE_CHECKING:
    from swarm_ui.environments.phone.sampling import Sampler

Row = Mapping[str, str]
"""One record; switches and check boxes hold ``"on"`` or ``"off"``."""
Rows = Mapping[int, Row]
"""Records of a table by identity, oldest first."""


class Screen(NamedTuple):
    """Address of a screen: equal addresses show the same place."""

    app: str
    kind: str = "list"
    of: str = ""
    """Table or category shown, where the app has several."""
    row: int = 0
    """Identity of the record shown; 0 where there is none."""


Path = tuple[Screen, ...]
"""Screens from an app's first screen to the current one; empty on the home screen."""


class Field(msgspec.Struct, frozen=True):
    """One property of a record."""

    name: str
    kind: Literal["text", "choice", "switch"] = "text"
    choices: tuple[str, ...] = ()
    default: str = ""
    sample: Callable[[Sampler], str] | None = None
    """Draws a random value; ``None``: one of ``choices``, or a switch that is mostly off."""

    def random_value(self, sampler: Sampler) -> str:
        """A value for a random record."""
        if self.sample is not None:
            return self.sample(sampler)
        return sampler.pick(self.choices or ("off", "off", "on"))


class Table(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """A kind of record, and the texts of its screens."""

    name: str
    """The name of one record, such as ``"contact"``."""
    app: str
    fields: tuple[Field, ...]
    """The first is the title that lists show; a form cannot be saved without it."""
    trail: Path = ()
    """Screens from the app's first one to the list of these records; by default only the first."""
    add: str = "add"
    save: str = "save"
    edit: str = "edit"
    """Label of the edit button; empty: records cannot be edited."""
    delete: str = "delete"
    reply: str = ""
    """Label of the button that answers a record; empty: there are no answers."""
    cancel: str = "cancel"
    checklist: bool = False
    """Whether list rows have check boxes for the first switch, instead of opening the record."""
    search: str = ""
    """Label of the button that searches a record; empty: they are listed."""

    def __post_init__(self) -> None:
        if not self.trail:
            msgspec.structs.force_setattr(self, "trail", (Screen(self.app),))

    @property
    def title(self) -> str:
        return self.fields[0].name

    @cached_property
    def form(self) -> tuple[Field, ...]:
        """The fields that forms show."""
        return tuple(field for field in self.fields if field.kind != "switch")

    @cached_property
    def switches(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.kind == "switch")

    def path(self, kind: str, row: int = 0) -> Path:
        """The screens that lead to a record, or to a form or dialog about it."""
        if kind in ("detail", "new"):
            return (*self.trail, self.screen(kind, row))
        between = self.screen("remove") if self.checklist else self.screen("detail", row)
        return (*self.trail, between, self.screen(kind, row))

    def screen(self, kind: str, row: int = 0) -> Screen:
        return Screen(self.app, kind, self.name, row)


class Effect(Protocol):
    """A change of the device, such as that of a tap."""

    def apply(self, device: Device) -> str | None:
        """Change the device. Returns a note if the change is not possible."""
        ...


class Widget(msgspec.Struct, frozen=True, gc=False):
    """An element of a screen before it has an index."""

    role: Role
    text: str
    value: str | None = None
    checked: bool | None = None
    effect: Effect | None = None
    """The effect of a tap; ``None``: none."""
    field: str | None = None
    """Name of the field of the form that typing fills; ``None``: not editable."""
    scrollable: bool = False
    description: str = ""
    """What a picture without text shows."""


ON_OFF = ("off", "on")


class Setting(msgspec.Struct, frozen=True):
    """A switch or choice of the device, and the screens that lead to it."""

    path: Path
    choices: tuple[str, ...] = ON_OFF


class App(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """An app of the phone: its records and settings, and what leads from screen to screen."""

    name: str
    named: bool = True
    """Whether its name says what it stores, so that a goal need not mention the app."""
    tables: tuple[Table, ...] = ()
    settings: Mapping[str, Setting] = {}
    links: Mapping[Screen, Sequence[Widget]] = {}
    """Further widgets of its screens."""
    sample: Callable[[Sampler], dict[str, str]] | None = None
    """Draws a random record; ``None``: a random value for each field."""

    @cached_property
    def lists(self) -> Mapping[Screen, Table]:
        """The table that a screen lists."""
        return {table.trail[-1]: table for table in self.tables}

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Its settings that are on or off."""
        return tuple(key for key, place in self.settings.items() if place.choices == ON_OFF)

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """Its settings with options."""
        return tuple(key for key, place in self.settings.items() if place.choices != ON_OFF)

    @cached_property
    def shown(self) -> Mapping[Screen, Sequence[str]]:
        """The settings that a screen shows, the switches first."""
        found: dict[Screen, list[str]] = {}
        for keys, place in ((self.switches, -1), (self.choices, -2)):
            for key in keys:
                found.setdefault(self.settings[key].path[place], []).append(key)
        return found

    def record(self, sampler: Sampler, table: Table) -> dict[str, str]:
        """A random record of one of its tables."""
        if self.sample is not None:
            return self.sample(sampler)
        return {field.name: field.random_value(sampler) for field in table.fields}

    def fill(self, device: Device, sampler: Sampler, least: int, most: int) -> None:
        """Store random settings and ``least`` to ``most`` random records per table."""
        for table in self.tables:
            rows = {}
            for _ in range(least + int(sampler.rng.random() * (most - least + 1))):
                rows[device.next_row] = self.record(sampler, table)
                device.next_row += 1
            device.tables = {**device.tables, table.name: rows}
        if self.settings:
            chosen = {key: sampler.pick(where.choices) for key, where in self.settings.items()}
            device.settings = {**device.settings, **chosen}


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """The apps that a device may have, with all their tables and settings by name."""

    apps: Mapping[str, App]
    tables: Mapping[str, Table]
    places: Mapping[str, Setting]
    """All switches and choices, with their screens."""

    @staticmethod
    def of(*apps: App) -> Catalogue:
        """A catalogue of apps. Their names, and those of their tables and settings, are unique."""
        return Catalogue(
            apps={app.name: app for app in apps},
            tables={table.name: table for app in apps for table in app.tables},
            places={key: place for app in apps for key, place in app.settings.items()},
        )


NO_APPS = Catalogue.of()


class Device:
    """The stored data, and the screen that the user sees."""

    def __init__(self, installed: tuple[str, ...] = (), catalogue: Catalogue = NO_APPS) -> None:
        self.catalogue = catalogue
        """The definitions of its apps."""
        self.installed = installed
        """Apps on the home screen."""
        self.settings: Mapping[str, str] = {}
        self.tables: Mapping[str, Rows] = {}
        self.stack: Path = ()
        self.home: Path = ()
        """What is shown in place of the home screen, on a device with a single app."""
        self.draft: Row = {}
        """Contents of the current form; cleared when the screen is left."""
        self.page = 0
        """The page of the current list."""
        self.copied: tuple[str, ...] = ()
        """All copied values, oldest first."""
        self.toast = ""
        """A short message that is shown until the next action."""
        self.answer: str | None = None
        self.next_row = 1

    def clone(self) -> Self:
        """An independent copy."""
        copy = object.__new__(type(self))
        copy.__dict__ = self.__dict__.copy()
        return copy

    @property
    def screen(self) -> Screen | None:
        """The current screen; ``None`` on the home screen."""
        return self.stack[-1] if self.stack else None

    def show(self, stack: Path, draft: Row | None = None) -> None:
        """Bring a screen to the front, unscrolled, its form filled with ``draft``."""
        self.stack = stack or self.home
        self.draft = draft or {}
        self.page = 0

    def back(self) -> None:
        self.show(self.stack[:-1])

    def fill_in(self, field: str, text: str) -> None:
        """Replace the text of a field of the current form."""
        self.draft = {**self.draft, field: text}

    def insert(self, table: str, row: Row) -> int:
        """Add a record; return its identity."""
        identity = self.next_row
        self.next_row = identity + 1
        self.tables = {**self.tables, table: {**self.tables.get(table, {}), identity: row}}
        return identity

    def update(self, table: str, identity: int, changes: Row) -> None:
        rows = self.tables[table]
        row = {**rows[identity], **changes}
        self.tables = {**self.tables, table: {**rows, identity: row}}

    def remove(self, table: str, identity: int) -> None:
        rows = {key: row for key, row in self.tables[table].items() if key != identity}
        self.tables = {**self.tables, table: rows}

    def set(self, key: str, value: str) -> None:
        self.settings = {**self.settings, key: value}


def same_text(left: str, right: str) -> bool:
    """Whether two texts are equal apart from case and repeated spaces."""
    return left == right or left.casefold().split() == right.casefold().split()
