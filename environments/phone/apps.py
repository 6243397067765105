"""The apps of the simulated phone: tables of records, and the screens that are not their lists.

An app that only stores records needs no code: its tables are enough. Recipes and music are test
apps: no training template opens them. Browser and files are only panes of split facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import msgspec

from swarm_ui.environments.phone.effects import Go
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import (
    App,
    Catalogue,
    Field,
    Path,
    Screen,
    Setting,
    Table,
    Widget,
)


def _table(fields: Sequence[Mapping[str, Any]], trail: Sequence[Any] = (), **entry: Any) -> Table:
    """A table of ``tables.json``."""
    shown = tuple(_field(**one) for one in fields)
    return Table(fields=shown, trail=tuple(Screen(*at) for at in trail), **entry)


def _field(values: str = "", choices: Sequence[str] = (), **entry: Any) -> Field:
    """A field; ``values``: the method of :class:`Sampler` that draws them."""
    sample = getattr(Sampler, values) if values else None
    return Field(choices=tuple(choices), sample=sample, **entry)


TABLES: Mapping[str, Table] = {
    entry["name"]: _table(**entry)
    for entry in msgspec.json.decode(files(__package__).joinpath("tables.json").read_bytes())
}
PLAYER = Screen("music", "player")
MODES = ("shuffle", "repeat", "equalizer")


# -- settings -------------------------------------------------------------------------------------

SWITCHES: Mapping[str, tuple[str, ...]] = {
    "network": ("wifi", "bluetooth", "hotspot", "roaming"),
    "display": ("dark mode", "auto rotate", "night light"),
    "sound": ("vibration", "touch sounds", "silent mode"),
    "privacy": ("location", "microphone", "usage data"),
}
CHOICES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "text size": ("display", ("small", "medium", "large")),
    "ringtone": ("sound", ("classic", "chime", "marimba")),
}
"""Choice -> its category and options."""


def category_path(category: str) -> Path:
    """The screens that lead to a category of the settings."""
    return (Screen("settings"), Screen("settings", "category", category))


def _settings() -> App:
    places = {
        key: Setting(category_path(category)) for category, keys in SWITCHES.items() for key in keys
    }
    for key, (category, options) in CHOICES.items():
        path = (*category_path(category), Screen("settings", "choice", key))
        places[key] = Setting(path, options)
    items = [Widget("item", name, effect=Go(category_path(name)[-1])) for name in SWITCHES]
    return App(name="settings", settings=places, links={Screen("settings"): items})


# -- the other apps --------------------------------------------------------------------------------


def _random_page(sampler: Sampler) -> dict[str, str]:
    return {
        "address": sampler.address(),
        "name": sampler.phrase(),
        "phone": sampler.phone(),
        "price": sampler.amount(),
        "opens": sampler.time(),
        "file": sampler.title(),
        "size": sampler.number(),
        "bookmarked": sampler.pick(("off", "off", "on")),
    }


def _random_file(sampler: Sampler) -> dict[str, str]:
    folder = sampler.pick(TABLES["file"].fields[1].choices)
    kind = sampler.pick(("document", "photo", "video"))
    return {
        "name": sampler.title(),
        "folder": folder,
        "kind": kind,
        "size": sampler.number(),
        "starred": sampler.pick(("off", "off", "on")),
    }


def _app(name: str, **more: Any) -> App:
    """An app with the tables that name it."""
    return App(
        name=name, tables=tuple(table for table in TABLES.values() if table.app == name), **more
    )


CORE = (
    _settings(),
    _app("contacts"),
    _app("messages"),
    _app(
        "clock",
        links={Screen("clock"): [Widget("tab", "timers", effect=Go(TABLES["timer"].trail[-1]))]},
    ),
    *map(_app, ("notes", "tasks", "expenses", "calendar", "recipes")),
    _app(
        "music",
        settings={mode: Setting((Screen("music"), PLAYER)) for mode in MODES},
        links={Screen("music"): [Widget("tab", "player", effect=Go(PLAYER))]},
    ),
)
PHONE = Catalogue.of(
    *CORE, _app("files", sample=_random_file), _app("browser", sample=_random_page)
)
"""The phone's own apps."""
TEST_APPS = ("recipes", "music")
TRAIN_APPS = tuple(app.name for app in CORE if app.name not in TEST_APPS)
