"""The apps of the simulated phone: tables of records, and the screens that are not their lists.

An app that only stores records needs no code: its tables are enough. Recipes and music are test
apps: no training template opens them. Browser and files are only panes of split facts.
"""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.effects import Go, Save
from swarm_ui.environments.phone.record_screens import form, listing, record_screen
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import (
    App,
    Catalogue,
    Device,
    Field,
    Path,
    Screen,
    Setting,
    Table,
    Widget,
)

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
TIMERS = Screen("clock", "list", "timer")
PLAYER = Screen("music", "player")
MODES = ("shuffle", "repeat", "equalizer")

MESSAGE = Table(
    name="message",
    app="messages",
    fields=(Field("to", sample=Sampler.first_name), Field("text", sample=Sampler.phrase)),
    add="compose",
    save="send",
    edit="",
)
PAGE = Table(
    name="page",
    app="browser",
    fields=(
        *(Field(name) for name in ("address", "name", "phone", "price", "opens")),
        Field("bookmarked", "switch", default="off"),
    ),
)
FOLDERS = ("documents", "downloads", "pictures", "recordings")
FILE = Table(
    name="file",
    app="files",
    fields=(
        Field("name"),
        Field("folder", "choice", FOLDERS),
        Field("starred", "switch", default="off"),
    ),
)
CONTACT = Table(
    name="contact",
    app="contacts",
    fields=(
        Field("name", sample=Sampler.full_name),
        Field("phone", sample=Sampler.phone),
        Field("email", sample=Sampler.email),
        Field("favorite", "switch", default="off"),
    ),
)
NOTE = Table(
    name="note",
    app="notes",
    fields=(
        Field("title", sample=Sampler.title),
        Field("body", sample=Sampler.phrase),
        Field("pinned", "switch", default="off"),
    ),
    add="new",
)
TASK = Table(
    name="task",
    app="tasks",
    fields=(Field("task", sample=Sampler.chore), Field("done", "switch", default="off")),
    add="new task",
    save="create",
    edit="",
    delete="remove",
    checklist=True,
)
EXPENSE = Table(
    name="expense",
    app="expenses",
    fields=(
        Field("item", sample=Sampler.noun),
        Field("amount", sample=Sampler.amount),
        Field("category", "choice", ("food", "travel", "home", "fun")),
    ),
    add="add expense",
)
EVENT = Table(
    name="event",
    app="calendar",
    fields=(
        Field("title", sample=Sampler.phrase),
        Field("time", sample=Sampler.time),
        Field("place", sample=Sampler.noun),
        Field("day", "choice", DAYS),
    ),
    add="new event",
)
ALARM = Table(
    name="alarm",
    app="clock",
    fields=(
        Field("time", sample=Sampler.time),
        Field("label", sample=Sampler.noun),
        Field("active", "switch", default="on", sample=lambda s: s.pick(("off", "on"))),
    ),
    add="new alarm",
)
TIMER = Table(
    name="timer",
    app="clock",
    fields=(Field("minutes", sample=Sampler.number), Field("purpose", sample=Sampler.noun)),
    trail=(Screen("clock"), TIMERS),
    add="new timer",
    save="start",
)
RECIPE = Table(
    name="recipe",
    app="recipes",
    fields=(
        Field("dish", sample=Sampler.phrase),
        Field("duration", sample=Sampler.number),
        Field("servings", sample=lambda s: str(1 + int(s.rng.random() * 8))),
        Field("starred", "switch", default="off"),
    ),
    add="write recipe",
    save="keep",
    edit="change",
    delete="discard",
)
PLAYLIST = Table(
    name="playlist",
    app="music",
    fields=(
        Field("playlist", sample=Sampler.title),
        Field("song", sample=Sampler.phrase),
        Field("offline", "switch", default="off"),
    ),
    add="create playlist",
    save="finish",
    edit="rename",
    delete="erase",
)


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


# -- apps with screens of their own ---------------------------------------------------------------


def reply_path(row: int) -> Path:
    """The screens that lead to the answer to a message."""
    return (*MESSAGE.path("detail", row), MESSAGE.screen("reply", row))


def _messages(device: Device, screen: Screen) -> list[Widget]:
    """Short texts that can be read, answered and deleted, but not edited."""
    if screen.kind == "list":
        return listing(device, MESSAGE)
    if screen.kind == "reply":
        return form(MESSAGE, device.draft, Save(MESSAGE))
    shown = record_screen(device, MESSAGE, screen)
    if screen.kind == "detail":
        draft = {"to": device.tables["message"][screen.row]["to"]}
        shown.append(Widget("button", "reply", effect=Go(reply_path(screen.row)[-1], draft)))
    return shown


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
    folder = sampler.pick(FOLDERS)
    kind = sampler.pick(("document", "photo", "video"))
    return {
        "name": sampler.title(),
        "folder": folder,
        "kind": kind,
        "size": sampler.number(),
        "starred": sampler.pick(("off", "off", "on")),
    }


CORE = (
    _settings(),
    App(name="contacts", tables=(CONTACT,)),
    App(name="messages", tables=(MESSAGE,), build=_messages),
    App(
        name="clock",
        tables=(ALARM, TIMER),
        links={Screen("clock"): [Widget("tab", "timers", effect=Go(TIMERS))]},
    ),
    App(name="notes", tables=(NOTE,)),
    App(name="tasks", tables=(TASK,)),
    App(name="expenses", tables=(EXPENSE,)),
    App(name="calendar", tables=(EVENT,)),
    App(name="recipes", tables=(RECIPE,)),
    App(
        name="music",
        tables=(PLAYLIST,),
        settings={mode: Setting((Screen("music"), PLAYER)) for mode in MODES},
        links={Screen("music"): [Widget("tab", "player", effect=Go(PLAYER))]},
    ),
)
PHONE = Catalogue.of(
    *CORE,
    App(name="files", tables=(FILE,), sample=_random_file),
    App(name="browser", tables=(PAGE,), sample=_random_page),
)
"""The phone's own apps."""
TEST_APPS = ("recipes", "music")
TRAIN_APPS = tuple(app.name for app in CORE if app.name not in TEST_APPS)
