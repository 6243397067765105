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
from swarm_ui.environments.phone.goal import (
    Change,
    Configure,
    Create,
    Delete,
    Goal,
    InFront,
    Source,
    Want,
)
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import App, Catalogue, Device, Field, Row, Screen, Table

TemplateSplit = Literal["train", "validation", "new_templates", "new_apps", "twins", "invented"]
"""The twins of tasks that cannot be done are in no other split. Tasks of invented apps are only for
training."""
Words = Mapping[str, str]
"""Values for the placeholders of a text."""


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A goal with random parameters, and the words that a text needs to state it."""

    goal: Goal
    words: Words


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
    install: Callable[[Sampler], Device] | None = None
    """Makes a device of its own, with the apps and records that it has besides those of the task.
    """

    @property
    def budget(self) -> int:
        """Maximum number of actions of an agent: twice the solver's maximum, plus three."""
        return 2 * self.steps + 3


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its parameters, and the device at the start."""

    template: Template
    text: str
    """The goal as the agent reads it."""
    goal: Goal
    start: Device
    """The device at the start; do not change it."""
    parameters: frozenset[str]
    """All random values on the device and in the goal, closed choices excepted."""
    salt: int
    """Decides order and decoys of this episode's screens."""


def draw(template: Template, seed: int, *, number: int | None = None) -> Assignment:
    """Draw the parameters of a task; equal arguments give equal assignments.

    Args:
        template: the task.
        seed: decides the split that all random values are from.
        number: seed of all random choices, if not ``seed``.

    Raises:
        ConfigError: the seed belongs to no split.
    """
    number = seed if number is None else number
    salt = crc32(template.name.encode(), number & 0xFFFFFFFF)
    sampler = Sampler(random.Random(salt << 32 | number), split_of(seed))
    device = template.install(sampler) if template.install else _device(template, sampler)
    drawn = template.draw(sampler, device)
    return Assignment(
        template=template,
        text=sampler.pick(template.texts).format_map(drawn.words),
        goal=drawn.goal,
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

    def field(self, sampler: Sampler, fields: Sequence[Field]) -> Field:
        """The field that a task is about, or else any of ``fields``."""
        if not self.fields:
            return sampler.pick(fields)
        return next(field for field in self.records.fields if field.name == self.fields[0])

    def text_field(self, sampler: Sampler) -> str:
        """Any field of the form that takes text, except the title."""
        return sampler.pick([field.name for field in self.records.form[1:] if field.kind == "text"])


DrawKind = Callable[[About, Sampler, Device], Drawn]


def drawn(*wants: Want, words: Words, **goal: object) -> Drawn:
    """A goal with conditions; ``goal``: its other fields."""
    return Drawn(goal=msgspec.structs.replace(Goal(wants=wants), **goal), words=words)


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
    return drawn(Create(table=about.records.name, fields=fields), words=fields)


def edit(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Change a field of a record."""
    table = about.records
    key, row = about.row(sampler, device)
    field, value = changed(about, sampler, row)
    want = Change(table=table.name, row=key, fields={field.name: value})
    return drawn(want, words={"title": row[table.title], "field": field.name, "value": value})


def changed(about: About, sampler: Sampler, row: Row) -> tuple[Field, str]:
    """The field that the task is about, or any of the form, and another value for it."""
    table, form = about.records, about.records.form
    if about.fields:
        field = about.field(sampler, form)
        return field, other(row[field.name], lambda: about.record(sampler)[field.name])
    fields = form[1:] if len(form) > 1 and sampler.rng.random() < 0.85 else table.form
    field = sampler.pick(fields)
    return field, other(row[field.name], lambda: field.random_value(sampler))


def other(before: str, make: Callable[[], str]) -> str:
    """A value that is not the one before."""
    while (value := make()) == before:
        pass
    return value


def delete(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Delete a record."""
    return deleted(about, *about.row(sampler, device))


def deleted(about: About, key: int, row: Row) -> Drawn:
    """Delete this record."""
    table = about.records
    return drawn(Delete(table=table.name, row=key), words={"title": row[table.title]})


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
    want = Change(table=table.name, row=key, fields={field: state})
    return drawn(want, words={"title": row[table.title], "switch": field, "state": state})


def _opposite(state: str) -> str:
    return "off" if state == "on" else "on"


def check(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Check the boxes of some records."""
    table, chosen = about.records, about.rows(sampler, device)
    switch = table.switches[0].name
    for key in chosen:
        device.update(table.name, key, {switch: "off"})
    return drawn(
        *(Change(table=table.name, row=key, fields={switch: "on"}) for key in chosen),
        words={**numbered(title=[row[table.title] for row in chosen.values()]), "switch": switch},
    )


def read(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Answer with a field of a record."""
    return _told(about, about.row(sampler, device), about.field(sampler, about.records.form[1:]))


def state(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Answer with ``on`` or ``off``, the state of a switch of a record."""
    return _told(about, about.row(sampler, device), about.field(sampler, about.records.switches))


def _told(about: About, record: tuple[int, Row], field: Field) -> Drawn:
    table, (key, row) = about.records, record
    words = {"title": row[table.title], "field": field.name, "switch": field.name}
    return drawn(answer=row[field.name], look=table.path("detail", key), words=words)


def show(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Open the screen of a record."""
    table = about.records
    key, row = about.row(sampler, device)
    return drawn(InFront(path=table.path("detail", key)), words={"title": row[table.title]})


def missing(about: About, sampler: Sampler, device: Device) -> Drawn:
    """A task about a record that does not exist; it is infeasible."""
    table, title = about.records, about.record(sampler)[about.records.title]
    return drawn(words={"title": title}, look=table.trail, infeasible=True)


def switches(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Toggle switches of the device; ``{state}`` is the new state."""
    chosen = sampler.rng.sample(about.fields or about.app.switches, about.count)
    states = [_opposite(device.settings[key]) for key in chosen]
    wants = (Configure(key=key, value=value) for key, value in zip(chosen, states, strict=True))
    return drawn(*wants, words=numbered(switch=chosen, state=states))


def choice(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Choose another option of a setting."""
    key = about.fields[0] if about.fields else sampler.pick(about.app.choices)
    options = about.app.settings[key].choices
    option = sampler.pick([one for one in options if one != device.settings[key]])
    return drawn(Configure(key=key, value=option), words={"switch": key, "option": option})


def open_app(app: str) -> Drawn:
    """Open an app."""
    return drawn(InFront(path=(Screen(app),)), words={"app": app})


def copy(
    origin: About, into: About, sampler: Sampler, device: Device, *, existing: bool = False
) -> Drawn:
    """Look a field up (a tap copies it), then write it into a new record of another table, or into
    an existing one.

    ``into`` names the fields of a new record that the goal gives; if ``origin`` names two fields,
    they are the one to copy and the one to write it into.
    """
    table, title = origin.records, into.records.title
    key, row = origin.row(sampler, device)
    other = into.row(sampler, device) if existing else None
    field, slot = origin.fields or (origin.text_field(sampler), into.text_field(sampler))
    written, sources = {slot: row[field]}, (Source(table.name, key, field, row[field]),)
    words = {"source": row[table.title], "field": field, "field2": slot}
    if other is not None:
        change = Change(table=into.records.name, row=other[0], fields=written, sources=sources)
        return drawn(change, words={**words, "title2": other[1][title]})
    record = into.record(sampler)
    given = {name: record[name] for name in into.fields}
    new = Create(table=into.records.name, fields={**written, **given}, sources=sources)
    return drawn(new, words={**words, **given})


def both(first: Draw, second: Draw) -> Draw:
    """Two tasks as one; the words of the second have a ``2`` after their names."""

    def make(sampler: Sampler, device: Device) -> Drawn:
        one, two = first(sampler, device), second(sampler, device)
        words = {**one.words, **{f"{name}2": word for name, word in two.words.items()}}
        return drawn(*one.goal.wants, *two.goal.wants, words=words)

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
