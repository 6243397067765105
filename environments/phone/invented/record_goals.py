"""Goals about the records of an invented app: each function draws one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.invented.goal_owner import (
    Owner,
    free_fields,
    goal,
    joined,
    record,
    self_telling,
)
from swarm_ui.environments.phone.invented.wordings import listed, phrase, rest, several
from swarm_ui.environments.phone.invented.words import VALUE_OF
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Change, Create, Delete, Goal, ScreenInFront
from swarm_ui.environments.phone.tasks.task_kinds import random_row


def _given(sampler: Sampler, table: Table, full: bool) -> dict[str, str]:
    """Random values for a new record: its title, and all or some of its other fields."""
    values = record(sampler, table)
    names = [field.name for field in table.form[1:]]
    count = len(names) if full else int(sampler.rng.random() * (min(3, len(names)) + 1))
    chosen = sampler.rng.sample(names, min(count, len(names)))
    return {table.title: values[table.title], **{n: values[n] for n in names if n in chosen}}


def create(full: bool, owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: create a record. The text gives all fields of the form (``full``), or some of
    them."""
    table, rng, wordings = owner.records, sampler.rng, owner.wordings
    fields = _given(sampler, table, full)
    say = partial(
        listed, rng=rng, wordings=wordings, free=free_fields(table), alone=self_telling(table)
    )
    others = {name: value for name, value in fields.items() if name != table.title}
    words = {
        "fields": say(fields), "title": fields[table.title],
        "rest": rest(say(others), rng, wordings=wordings),
    }  # fmt: skip
    text = owner.text("create", rng, **words)
    return goal(text, wants=(Create(table=table.name, fields=fields),))


def edit(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: change one field of a record."""
    table = owner.records
    key, row = random_row(table, sampler, device)
    field, value = _changed(sampler, table, row)
    kind = "edit"
    if owner.wordings == "many" and sampler.rng.random() < 0.3:
        dated = VALUE_OF.get(field.name) in ("time", "date")
        kind = "classify" if field.kind == "choice" else "reschedule" if dated else "edit"
    text = owner.text(kind, sampler.rng, title=row[table.title], field=field.name, value=value)
    return goal(text, wants=(Change(table=table.name, row=key, fields={field.name: value}),))


def edit_two(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: change two fields of a record."""
    table, rng = owner.records, sampler.rng
    key, row = random_row(table, sampler, device)
    fields: dict[str, str] = {}
    while len(fields) < 2:
        field, value = _changed(sampler, table, row)
        fields[field.name] = value
    (one, first), (two, second) = fields.items()
    words = {"field": one, "value": first, "field2": two, "value2": second}
    words["fields"] = listed(fields, rng, wordings=owner.wordings, free=free_fields(table))
    text = owner.text("edit2", rng, title=row[table.title], **words)
    return goal(text, wants=(Change(table=table.name, row=key, fields=fields),))


def _changed(sampler: Sampler, table: Table, row: Mapping[str, str]) -> tuple[Field, str]:
    """A random field of the form, and a new value for it."""
    fields = table.form[1:] if len(table.form) > 1 and sampler.rng.random() < 0.85 else table.form
    field = sampler.pick(fields)
    value = field.random_value(sampler)
    while value == row[field.name]:
        value = field.random_value(sampler)
    return field, value


def delete(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: delete a record."""
    table = owner.records
    key, row = random_row(table, sampler, device)
    text = owner.text("delete", sampler.rng, title=row[table.title])
    return goal(text, wants=(Delete(table=table.name, row=key),))


def delete_two(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: delete two records."""
    table, rows = owner.records, device.tables[owner.records.name]
    chosen = sampler.rng.sample(list(rows), 2)
    titles = [rows[key][table.title] for key in chosen]
    title = several(titles, sampler.rng, wordings=owner.wordings)
    slots = owner.slots(title=title)
    text = phrase(
        "delete", slots, sampler.rng, wordings=owner.wordings, mention=owner.mention, free=()
    )
    return goal(text, wants=tuple(Delete(table=table.name, row=key) for key in chosen))


def create_two(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: create two records."""
    half = owner.half()
    first, second = create(False, half, sampler, device), create(False, half, sampler, device)
    return joined(first, second, owner, sampler)


def toggle(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: toggle a switch of a record."""
    table = owner.records
    key, row = random_row(table, sampler, device)
    field, state = sampler.pick(table.switches).name, sampler.pick(("on", "on", "off"))
    device.update(table.name, key, {field: "off" if state == "on" else "on"})
    kind, chance = "toggle", sampler.rng.random()
    if owner.wordings == "many" and chance < 0.3:
        kind = "mark" if state == "on" else "unmark"
    elif owner.wordings == "many" and chance < 0.6 and len(table.switches) == 1:
        kind = "toggle_only"
    text = owner.text(kind, sampler.rng, title=row[table.title], switch=field, state=state)
    return goal(text, wants=(Change(table=table.name, row=key, fields={field: state}),))


def check(count: int, owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: check the boxes of ``count`` records."""
    table, rng = owner.records, sampler.rng
    field, rows = table.switches[0].name, device.tables[table.name]
    chosen = rng.sample(list(rows), count)
    for key in chosen:
        device.update(table.name, key, {field: "off"})
    titles = several([rows[key][table.title] for key in chosen], rng, wordings=owner.wordings)
    text = owner.text("check", rng, titles=titles, switch=field)
    wants = tuple(Change(table=table.name, row=key, fields={field: "on"}) for key in chosen)
    return goal(text, wants=wants)


def read(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: answer with a value of a record."""
    table = owner.records
    key, row = random_row(table, sampler, device)
    field = sampler.pick([field.name for field in table.form[1:]])
    text = owner.text("read", sampler.rng, title=row[table.title], field=field)
    return goal(text, answer=row[field], look=table.path("detail", key))


def state(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: answer with ``on`` or ``off``, the state of a switch."""
    table = owner.records
    key, row = random_row(table, sampler, device)
    field = sampler.pick(table.switches).name
    text = owner.text("state", sampler.rng, title=row[table.title], switch=field)
    return goal(text, answer=row[field], look=table.path("detail", key))


def show(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: open the screen of a record."""
    table = owner.records
    key, row = random_row(table, sampler, device)
    text = owner.text("show", sampler.rng, title=row[table.title])
    return goal(text, wants=(ScreenInFront(path=table.path("detail", key)),))


def missing(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal about a record that does not exist; the task is infeasible."""
    table, rng = owner.records, sampler.rng
    values = record(sampler, table)
    words = {"title": values[table.title]}
    kinds = ["delete"]
    if table.checklist:
        kinds.append("check")
        words |= {"titles": words["title"], "switch": table.switches[0].name}
    else:
        kinds.append("show")
        if len(table.form) > 1:
            field = sampler.pick(table.form[1:]).name
            kinds += ["read"] + ["edit"] * bool(table.edit)
            words |= {"field": field, "value": values[field]}
        if table.switches:
            kinds.append("toggle")
            words |= {"switch": sampler.pick(table.switches).name}
            words |= {"state": sampler.pick(("on", "off"))}
    look = table.trail
    if owner.app.searched:
        look = (*look, Screen(table.app, "missing", words["title"].casefold()))
    return goal(owner.text(sampler.pick(kinds), rng, **words), look=look, infeasible=True)
