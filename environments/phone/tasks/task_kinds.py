"""Templates of the kinds that occur in many apps: create, edit, delete, toggle or read a record.

Each function returns a complete template. The table determines the app, the number of steps, the
tags, and the goal texts if they are the same in all apps. Other texts are given with
:meth:`~swarm_ui.environments.phone.tasks.template.Template.phrased`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from swarm_ui.environments.phone.apps import APPS, PLACES
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Change, Configure, Create, Delete, Goal, Want
from swarm_ui.environments.phone.tasks.template import Make, Template, TemplateSplit, template


def sample(sampler: Sampler, table: Table) -> dict[str, str]:
    """Draw a random record that is not on the device yet."""
    return APPS[table.app].record(sampler, table)


def add_record(
    table: Table, sampler: Sampler, device: Device, **fields: str
) -> tuple[int, dict[str, str]]:
    """Store one more record with these values; return its identity and the record."""
    row = {**sample(sampler, table), **fields}
    return device.insert(table.name, row), row


def values(sampler: Sampler, table: Table, names: Sequence[str]) -> dict[str, str]:
    """New values for some fields of a record."""
    record = sample(sampler, table)
    return {name: record[name] for name in names}


def random_row(table: Table, sampler: Sampler, device: Device) -> tuple[int, Row]:
    """Identity and values of any record of the table."""
    rows = device.tables[table.name]
    key = sampler.pick(list(rows))
    return key, rows[key]


def numbered(name: str, texts: Sequence[str]) -> dict[str, str]:
    """Values for the placeholders ``name``, ``name2``, ``name3`` … of a goal text."""
    return {f"{name}{k if k > 1 else ''}": text for k, text in enumerate(texts, start=1)}


def create_records(*records: tuple[Table, Sequence[str]]) -> Make:
    """Task: create records. The goal gives the named fields of each."""

    def make(sampler: Sampler, device: Device) -> Goal:
        given = [(table.name, values(sampler, table, names)) for table, names in records]
        words = {name: value for _, fields in given for name, value in fields.items()}
        return Goal(words=words, wants=tuple(Create(table=t, fields=f) for t, f in given))

    return make


def with_record(
    add: Callable[[Sampler, Device], tuple[int, Row]],
    names: Sequence[str],
    *wants: Callable[[int, Row], Want],
) -> Make:
    """Task about a record that ``add`` stores or picks: ``wants`` are conditions on it, and the
    goal gives its fields ``names``."""

    def make(sampler: Sampler, device: Device) -> Goal:
        key, row = add(sampler, device)
        return Goal(
            words={name: row[name] for name in names}, wants=tuple(want(key, row) for want in wants)
        )

    return make


def fact(add: Callable[[Sampler, Device], tuple[int, Row]], table: Table, *facts: str) -> Make:
    """Task: answer with one of the fields ``facts`` of a record that ``add`` stores."""

    def make(sampler: Sampler, device: Device) -> Goal:
        key, row = add(sampler, device)
        chosen = sampler.pick(facts)
        words = {table.title: row[table.title], "fact": chosen}
        return Goal(words=words, answer=row[chosen], look=table.path("detail", key))

    return make


def not_found(table: Table, draw: Callable[[Sampler], str]) -> Make:
    """Task about a record that does not exist; it is infeasible."""

    def make(sampler: Sampler, device: Device) -> Goal:
        words = {table.title: draw(sampler)}
        look = (*table.trail, Screen(table.app, "missing", words[table.title]))
        return Goal(words=words, look=look, infeasible=True)

    return make


def create(name: str, split: TemplateSplit, table: Table, *fields: str) -> Template:
    """Create a record; ``fields`` are those that the goal gives."""
    make = create_records((table, fields))
    steps = len(table.trail) + len(fields) + 2
    return template(split, name, make, steps, table.app, "form" + _choice_tag(table, fields))


def edit(name: str, split: TemplateSplit, table: Table, field: str) -> Template:
    """Change a field of a record."""

    def make(sampler: Sampler, device: Device) -> Goal:
        key, before = random_row(table, sampler, device)
        changed = values(sampler, table, (field,))
        while changed[field] == before[field]:
            changed = values(sampler, table, (field,))
        want = Change(table=table.name, row=key, fields=changed)
        return Goal(words={table.title: before[table.title], **changed}, wants=(want,))

    tags = "edit" + _choice_tag(table, (field,))
    return template(split, name, make, 5, table.app, tags).phrased(
        f"{table.edit} the {table.name} {{{table.title}}} and set {field} to {{{field}}}",
        f"change the {field} of {{{table.title}}} in {table.app} to {{{field}}}",
    )


def delete(name: str, split: TemplateSplit, table: Table) -> Template:
    """Delete a record."""
    make = deleted(table, random_row)
    return template(split, name, make, 4, table.app, "delete").phrased(*deletion_texts(table))


def deleted(table: Table, add: Callable[[Table, Sampler, Device], tuple[int, Row]]) -> Make:
    """Task: delete a record that ``add`` stores or picks."""
    return with_record(
        partial(add, table), (table.title,), lambda key, row: Delete(table=table.name, row=key)
    )


def missing(name: str, split: TemplateSplit, table: Table) -> Template:
    """Delete a record that does not exist: the task is infeasible."""

    def make(sampler: Sampler, device: Device) -> Goal:
        words = {table.title: sample(sampler, table)[table.title]}
        return Goal(words=words, look=table.trail, infeasible=True)

    return template(split, name, make, 1, table.app, "infeasible").phrased(*deletion_texts(table))


def deletion_texts(table: Table) -> tuple[str, str]:
    """Goal texts to delete a record."""
    title = f"{{{table.title}}}"
    return (f"{table.delete} the {table.name} {title}", f"{table.delete} {title} from {table.app}")


def toggle(name: str, split: TemplateSplit, table: Table) -> Template:
    """Toggle the switch of a record; the goal text can use the new state as ``{state}``."""
    field = table.switches[0].name

    def make(sampler: Sampler, device: Device) -> Goal:
        rows = device.tables[table.name]
        state = sampler.pick(("on", "on", "off"))
        (row,) = sampler.rng.sample(list(rows), 1)
        device.update(table.name, row, {field: "off" if state == "on" else "on"})
        want = Change(table=table.name, row=row, fields={field: state})
        return Goal(words={table.title: rows[row][table.title], "state": state}, wants=(want,))

    return template(split, name, make, 3, table.app, "toggle").phrased(
        f"turn {{state}} {field} for the {table.name} {{{table.title}}}",
        f"switch {field} {{state}} for {{{table.title}}} in {table.app}",
    )


def check(name: str, split: TemplateSplit, table: Table, count: int) -> Template:
    """Check the boxes of ``count`` records; the goal text has their numbered titles."""

    def make(sampler: Sampler, device: Device) -> Goal:
        field, rows = table.switches[0].name, device.tables[table.name]
        chosen = sampler.rng.sample(list(rows), count)
        for row in chosen:
            device.update(table.name, row, {field: "off"})
        words = numbered(table.title, [rows[row][table.title] for row in chosen])
        wants = tuple(Change(table=table.name, row=r, fields={field: "on"}) for r in chosen)
        return Goal(words=words, wants=wants)

    tags = "check several" if count > 1 else "check"
    built = template(split, name, make, count + 1, table.app, tags)
    return msgspec.structs.replace(built, rows=(max(3, count + 1), 5))


def read(name: str, split: TemplateSplit, table: Table, field: str) -> Template:
    """Answer with a field of a record."""

    def make(sampler: Sampler, device: Device) -> Goal:
        key, row = random_row(table, sampler, device)
        words = {table.title: row[table.title]}
        return Goal(words=words, answer=row[field], look=table.path("detail", key))

    return template(split, name, make, 3, table.app, "answer").phrased(
        f"what is the {field} of the {table.name} {{{table.title}}}",
        f"answer with the {field} of {{{table.title}}} in {table.app}",
    )


def switch(name: str, split: TemplateSplit, keys: Sequence[str], count: int = 1) -> Template:
    """Toggle switches of the device; the goal text has each ``switch`` and its new ``state``."""

    def make(sampler: Sampler, device: Device) -> Goal:
        chosen = sampler.rng.sample(list(keys), count)
        states = ["off" if device.settings[key] == "on" else "on" for key in chosen]
        wants = tuple(Configure(key=k, value=v) for k, v in zip(chosen, states, strict=True))
        return Goal(words={**numbered("switch", chosen), **numbered("state", states)}, wants=wants)

    tags = "toggle several" if count > 1 else "toggle"
    return template(split, name, make, 3 * count, PLACES[keys[0]].path[0].app, tags)


def choice(name: str, split: TemplateSplit, key: str) -> Template:
    """Choose another ``option`` of a setting."""

    def make(sampler: Sampler, device: Device) -> Goal:
        others = [option for option in PLACES[key].choices if option != device.settings[key]]
        option = sampler.pick(others)
        return Goal(words={"option": option}, wants=(Configure(key=key, value=option),))

    return template(split, name, make, 4, "settings", "choice")


def in_long_list(base: Template) -> Template:
    """A template for the same task, with a list that must be scrolled."""
    tags = (*base.tags, "scroll")
    return msgspec.structs.replace(base, steps=base.steps + 1, tags=tags, rows=(9, 12))


def _choice_tag(table: Table, fields: Sequence[str]) -> str:
    """The tag ``choice`` if one of the fields is a closed choice."""
    chosen = any(f.kind == "choice" for f in table.fields if f.name in fields)
    return " choice" if chosen else ""
