"""Apps that store records: contacts, notes, tasks, expenses, calendar, clock, recipes, music.

Recipes and music are test apps: no training template opens them.
"""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App, Setting, record_screen, setting_switch
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
CLOCK_ROOT, TIMERS = Screen("clock"), Screen("clock", "list", "timer")
MUSIC_ROOT, PLAYER = Screen("music"), Screen("music", "player")
MODES = ("shuffle", "repeat", "equalizer")

CONTACT = Table(
    name="contact",
    app="contacts",
    fields=(
        Field("name", sample=Sampler.full_name),
        Field("phone", sample=Sampler.phone),
        Field("email", sample=Sampler.email),
        Field("favorite", "switch", default="off"),
    ),
    trail=(Screen("contacts"),),
)
NOTE = Table(
    name="note",
    app="notes",
    fields=(
        Field("title", sample=Sampler.title),
        Field("body", sample=Sampler.phrase),
        Field("pinned", "switch", default="off"),
    ),
    trail=(Screen("notes"),),
    add="new",
)
TASK = Table(
    name="task",
    app="tasks",
    fields=(Field("task", sample=Sampler.chore), Field("done", "switch", default="off")),
    trail=(Screen("tasks"),),
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
    trail=(Screen("expenses"),),
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
    trail=(Screen("calendar"),),
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
    trail=(CLOCK_ROOT,),
    add="new alarm",
)
TIMER = Table(
    name="timer",
    app="clock",
    fields=(Field("minutes", sample=Sampler.number), Field("purpose", sample=Sampler.noun)),
    trail=(CLOCK_ROOT, TIMERS),
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
    trail=(Screen("recipes"),),
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
    trail=(MUSIC_ROOT,),
    add="create playlist",
    save="finish",
    edit="rename",
    delete="erase",
)


def _clock(device: Device, screen: Screen) -> list[Widget]:
    """Alarms, and timers behind a tab."""
    shown = record_screen(device, TIMER if screen.of == "timer" else ALARM, screen)
    return [*shown, Widget("tab", "timers", effect=Go(TIMERS))] if screen == CLOCK_ROOT else shown


def _music(device: Device, screen: Screen) -> list[Widget]:
    """Playlists, and the modes of the player behind a tab."""
    if screen == PLAYER:
        return [setting_switch(device, mode) for mode in MODES]
    shown = record_screen(device, PLAYLIST, screen)
    return [*shown, Widget("tab", "player", effect=Go(PLAYER))] if screen == MUSIC_ROOT else shown


CONTACTS = App(name="contacts", tables=(CONTACT,))
NOTES = App(name="notes", tables=(NOTE,))
TASKS = App(name="tasks", tables=(TASK,))
EXPENSES = App(name="expenses", tables=(EXPENSE,))
CALENDAR = App(name="calendar", tables=(EVENT,))
CLOCK = App(name="clock", widgets=_clock, tables=(ALARM, TIMER))
RECIPES = App(name="recipes", tables=(RECIPE,))
MUSIC = App(
    name="music",
    widgets=_music,
    tables=(PLAYLIST,),
    settings={mode: Setting((MUSIC_ROOT, PLAYER)) for mode in MODES},
)
