"""Task templates: a kind of task, what it is about, and its texts; and how an episode is drawn.

The kinds serve the phone's own apps and invented ones. A kind draws what it is not told: which
record, and, if no fields are named, which of its fields.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal
from zlib import crc32

import msgspec

from swarm_ui.environments.base import split_of
from swarm_ui.environments.phone.apps import PHONE, TRAIN_APPS
from swarm_ui.environments.phone.goal import Goal, Source, Want
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import (
    App,
    Catalogue,
    Device,
    Field,
    Row,
    Rows,
    Screen,
    Table,
)

TemplateSplit = Literal["train", "validation", "new_templates", "new_apps", "twins", "invented"]
"""The twins of tasks that cannot be done are in no other split. Tasks of invented apps are only for
training."""
Drawn = tuple[Goal, dict[str, str]]
"""A goal with random parameters, and the words for the placeholders of its text."""
Draw = Callable[[Sampler, Device], Drawn]
"""Draws parameters, stores what the task needs on the device, and returns the goal."""


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A task with parameters that are drawn at random for each episode."""

    name: str
    split: TemplateSplit
    kind: str
    apps: tuple[str, ...]
    """Apps that must be installed; empty: any."""
    draw: Draw
    steps: int
    """Maximum number of actions of the reference solver, without the one that ends the episode."""
    texts: tuple[str, ...]
    """Goal texts, the plainest first; names in braces are filled from the drawn words."""
    rows: tuple[int, int] = (3, 5)
    """Minimum and maximum number of records in the tables of ``apps``."""
    others: tuple[str, ...] = TRAIN_APPS
    """Apps that may be installed besides."""
    shown: tuple[int, ...] = (6, 7, 8)
    """Possible numbers of installed apps."""
    catalogue: Catalogue = PHONE

    @property
    def budget(self) -> int:
        """Maximum number of actions of an agent: twice the solver's maximum, plus three."""
        return 2 * self.steps + 3


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its parameters, and the device at the start."""

    budget: int
    """Maximum number of actions of an agent."""
    text: str
    """The goal as the agent reads it."""
    goal: Goal
    start: Device
    """The device at the start; do not change it."""
    parameters: frozenset[str]
    """All random values on the device and in the goal, closed choices excepted."""
    salt: int
    """Decides order and decoys of this episode's screens."""


def draw(template: Template, seed: int) -> Assignment:
    """Draw the parameters of a task; equal arguments give equal assignments.

    Raises:
        ConfigError: the seed belongs to no split.
    """
    salt = crc32(template.name.encode(), seed & 0xFFFFFFFF)
    sampler = Sampler(random.Random(salt << 32 | seed), split_of(seed))
    device = _device(template, sampler)
    goal, words = template.draw(sampler, device)
    return Assignment(
        budget=template.budget,
        text=sampler.pick(template.texts).format_map(words),
        goal=goal,
        start=device,
        parameters=frozenset(sampler.values),
        salt=salt,
    )


def _device(template: Template, sampler: Sampler) -> Device:
    """A device with the apps of the template and some others."""
    others = [name for name in template.others if name not in template.apps]
    count = max(0, sampler.pick(template.shown) - len(template.apps))
    chosen = sampler.rng.sample(others, min(count, len(others)))
    device = Device((*template.apps, *chosen), template.catalogue)
    for name in device.installed:
        least, most = template.rows if name in template.apps else (1, 3)
        template.catalogue.apps[name].fill(device, sampler, least, most)
    return device


# -- kinds ----------------------------------------------------------------------------------------


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a task is about: an app, and one of its tables if the task is about records."""

    app: App
    table: Table | None = None
    fields: tuple[str, ...] = ()
    """The fields, switches or choices that it may be about, or that it gives; empty: any."""
    count: int = 1
    """How many records or switches it is about."""

    @property
    def records(self) -> Table:
        """The table of the task's records; only for tasks about a table."""
        assert self.table is not None
        return self.table

    def record(self, sampler: Sampler) -> dict[str, str]:
        """A random record that is not on the device yet."""
        return self.app.record(sampler, self.records)

    def row(self, sampler: Sampler, device: Device) -> tuple[int, Row]:
        """Identity and values of any record of the table."""
        rows = device.tables[self.records.name]
        key = sampler.pick(list(rows))
        return key, rows[key]

    def rows(self, sampler: Sampler, device: Device) -> dict[int, Row]:
        """Some different records of the table."""
        rows = device.tables[self.records.name]
        return {key: rows[key] for key in sampler.rng.sample(list(rows), self.count)}

    def field(self, sampler: Sampler, fields: Sequence[Field]) -> str:
        """The field that a task is about, or else any of ``fields``."""
        return self.fields[0] if self.fields else sampler.pick(fields).name

    def text_field(self, sampler: Sampler) -> str:
        """Any field of the form that takes text, except the title."""
        return sampler.pick([field.name for field in self.records.form[1:] if field.kind == "text"])

    def titles(self, rows: Rows) -> list[str]:
        return [row[self.records.title] for row in rows.values()]

    def goal(self, changes: Rows) -> Goal:
        """Records have these values."""
        name = self.records.name
        return Goal(
            records=tuple(Want(table=name, row=key, fields=row) for key, row in changes.items())
        )


DrawKind = Callable[[About, Sampler, Device], Drawn]


def numbered(**texts: Sequence[str]) -> dict[str, str]:
    """Several words for one placeholder, as ``name``, ``name2``, ``name3`` …"""
    return {
        f"{name}{k if k > 1 else ''}": text
        for name, several in texts.items()
        for k, text in enumerate(several, start=1)
    }


def create(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Create a record with values for the named fields."""
    return created(about, about.record(sampler), about.fields)


def created(about: About, record: Row, names: Sequence[str]) -> Drawn:
    """Create a record with the values of this one in some fields."""
    fields = {name: record[name] for name in names}
    return Goal(records=(Want(table=about.records.name, fields=fields),)), fields


def edit(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Change a field of a record."""
    key, row = about.row(sampler, device)
    field, value = changed(about, sampler, row)
    words = {"title": row[about.records.title], "field": field, "value": value}
    return about.goal({key: {field: value}}), words


def changed(about: About, sampler: Sampler, row: Row) -> tuple[str, str]:
    """The field that the task is about, or any of the form, and another value for it."""
    form = about.records.form
    if about.fields:
        name, field = about.fields[0], None
    else:
        later = len(form) > 1 and sampler.rng.random() < 0.85
        field = sampler.pick(form[1:] if later else form)
        name = field.name
    while True:
        value = field.random_value(sampler) if field else about.record(sampler)[name]
        if value != row[name]:
            return name, value


def delete(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Delete a record."""
    return deleted(about, dict([about.row(sampler, device)]))


def deleted(about: About, rows: Rows) -> Drawn:
    """Delete these records."""
    wants = tuple(Want(table=about.records.name, row=key, gone=True) for key in rows)
    return Goal(records=wants), numbered(title=about.titles(rows))


def toggle(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Toggle a switch of a record; ``{state}`` is the new state."""
    table, states = about.records, ("on", "on", "off")
    if about.fields:
        state, field = sampler.pick(states), about.fields[0]
        ((key, row),) = about.rows(sampler, device).items()
    else:
        key, row = about.row(sampler, device)
        field, state = sampler.pick(table.switches).name, sampler.pick(states)
    device.update(table.name, key, {field: _opposite(state)})
    words = {"title": row[table.title], "switch": field, "state": state}
    return about.goal({key: {field: state}}), words


def _opposite(state: str) -> str:
    return "off" if state == "on" else "on"


def check(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Check the boxes of some records."""
    table, chosen = about.records, about.rows(sampler, device)
    switch = table.switches[0].name
    for key in chosen:
        device.update(table.name, key, {switch: "off"})
    words = {**numbered(title=about.titles(chosen)), "switch": switch}
    return about.goal({key: {switch: "on"} for key in chosen}), words


def read(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Answer with a field of a record."""
    return _told(about, about.row(sampler, device), about.field(sampler, about.records.form[1:]))


def state(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Answer with ``on`` or ``off``, the state of a switch of a record."""
    return _told(about, about.row(sampler, device), about.field(sampler, about.records.switches))


def _told(about: About, record: tuple[int, Row], field: str) -> Drawn:
    table, (key, row) = about.records, record
    words = {"title": row[table.title], "field": field, "switch": field}
    return Goal(answer=row[field], look=table.path("detail", key)), words


def show(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Open the screen of a record."""
    key, row = about.row(sampler, device)
    return Goal(front=about.records.path("detail", key)), {"title": row[about.records.title]}


def missing(about: About, sampler: Sampler, device: Device) -> Drawn:
    """A task about a record that does not exist; it is infeasible."""
    title = about.record(sampler)[about.records.title]
    return Goal(look=about.records.trail, infeasible=True), {"title": title}


def switches(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Toggle switches of the device; ``{state}`` is the new state."""
    chosen = sampler.rng.sample(about.fields or about.app.switches, about.count)
    states = [_opposite(device.settings[key]) for key in chosen]
    goal = Goal(settings=dict(zip(chosen, states, strict=True)))
    return goal, numbered(switch=chosen, state=states)


def choice(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Choose another option of a setting."""
    key = about.fields[0] if about.fields else sampler.pick(about.app.choices)
    options = about.app.settings[key].choices
    option = sampler.pick([one for one in options if one != device.settings[key]])
    return Goal(settings={key: option}), {"switch": key, "option": option}


def open_app(app: str) -> Drawn:
    """Open an app."""
    return Goal(front=(Screen(app),)), {"app": app}


def copy(
    origin: About, into: About, sampler: Sampler, device: Device, *, existing: bool = False
) -> Drawn:
    """Look a field up (a tap copies it), then write it into a new record of another table, or into
    an existing one.

    ``into`` names the fields of a new record that the goal gives; if ``origin`` names two fields,
    they are the one to copy and the one to write it into.
    """
    table = origin.records
    key, row = origin.row(sampler, device)
    other, known = into.row(sampler, device) if existing else (0, {})
    field, slot = origin.fields or (origin.text_field(sampler), into.text_field(sampler))
    record = known or into.record(sampler)
    given = {name: record[name] for name in into.fields}
    want = Want(
        table=into.records.name,
        row=other,
        fields={slot: row[field], **given},
        source=Source(table.name, key, field, row[field]),
    )
    words = {"source": row[table.title], "field": field, "field2": slot, **given}
    return Goal(records=(want,)), {**words, "title2": known[into.records.title]} if known else words


def both(first: Draw, second: Draw) -> Draw:
    """Two tasks as one; the words of the second have a ``2`` after their names."""

    def make(sampler: Sampler, device: Device) -> Drawn:
        (one, words), (two, more) = first(sampler, device), second(sampler, device)
        goal = Goal(records=one.records + two.records, settings={**one.settings, **two.settings})
        return goal, {**words, **{f"{name}2": word for name, word in more.items()}}

    return make


class Kind(msgspec.Struct, frozen=True):
    """A kind of task, and how many actions the reference solver needs for it."""

    draw: DrawKind
    after: int
    """Actions once the list, or the screen of the setting, is open."""
    each: int = 0
    """Further actions for each field to fill, or record to check."""

    def steps(self, way: int, several: int = 0) -> int:
        """Maximum number of actions; ``way``: screens on the way, without the home screen."""
        return way + self.after + self.each * several


KINDS: Mapping[str, Kind] = {
    "create": Kind(create, 2, 1),
    "edit": Kind(edit, 4),
    "delete": Kind(delete, 3),
    "toggle": Kind(toggle, 2),
    "check": Kind(check, 0, 1),
    "read": Kind(read, 2),
    "state": Kind(state, 2),
    "show": Kind(show, 1),
    "missing": Kind(missing, 0),
    "setting": Kind(switches, 1),
    "choice": Kind(choice, 1),
}
