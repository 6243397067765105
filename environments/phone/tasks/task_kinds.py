"""Makers of aims that many templates share."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.apps import APPS, PLACES
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Change, Configure, Create, Delete, Goal
from swarm_ui.environments.phone.tasks.template import Make


def sample(sampler: Sampler, table: Table) -> dict[str, str]:
    """A record that is not on the device yet."""
    return APPS[table.app].record(sampler, table)


def values(sampler: Sampler, table: Table, names: Sequence[str]) -> dict[str, str]:
    """New values for some fields of a record."""
    record = sample(sampler, table)
    return {name: record[name] for name in names}


def random_row(sampler: Sampler, device: Device, table: Table) -> int:
    """Any record of the table."""
    return sampler.pick(list(device.tables[table.name]))


def create(table: Table, *names: str) -> Make:
    """A new record; ``names`` are the fields that the goal gives."""

    def make(sampler: Sampler, device: Device) -> Goal:
        fields = values(sampler, table, names)
        return Goal(words=fields, wants=(Create(table=table.name, fields=fields),))

    return make


def create_two(table: Table, *names: str) -> Make:
    """Two new records; the second one's words end in ``2``."""

    def make(sampler: Sampler, device: Device) -> Goal:
        one, two = values(sampler, table, names), values(sampler, table, names)
        wants = tuple(Create(table=table.name, fields=fields) for fields in (one, two))
        return Goal(words={**one, **{f"{k}2": v for k, v in two.items()}}, wants=wants)

    return make


def delete(table: Table) -> Make:
    """A record gone."""

    def make(sampler: Sampler, device: Device) -> Goal:
        row = random_row(sampler, device, table)
        words = {table.title: device.tables[table.name][row][table.title]}
        return Goal(words=words, wants=(Delete(table=table.name, row=row),))

    return make


def missing(table: Table) -> Make:
    """Something with a record that is not there."""

    def make(sampler: Sampler, device: Device) -> Goal:
        words = {table.title: sample(sampler, table)[table.title]}
        return Goal(words=words, look=table.trail, infeasible=True)

    return make


def edit(table: Table, *names: str) -> Make:
    """New values in a record."""

    def make(sampler: Sampler, device: Device) -> Goal:
        row = random_row(sampler, device, table)
        before = device.tables[table.name][row]
        fields = values(sampler, table, names)
        while any(fields[name] == before[name] for name in names):
            fields = values(sampler, table, names)
        want = Change(table=table.name, row=row, fields=fields)
        return Goal(words={table.title: before[table.title], **fields}, wants=(want,))

    return make


def flip(table: Table, count: int = 1) -> Make:
    """The switch of one or more records turned over; words ``state``, and titles numbered from 2.

    All records chosen stand the other way before.
    """

    def make(sampler: Sampler, device: Device) -> Goal:
        field, rows = table.switches[0].name, device.tables[table.name]
        state = sampler.pick(("on", "on", "off"))
        chosen = sampler.rng.sample(list(rows), count)
        for row in chosen:
            device.update(table.name, row, {field: "off" if state == "on" else "on"})
        titles = [rows[row][table.title] for row in chosen]
        words = {f"{table.title}{k or ''}": t for k, t in zip((0, 2, 3), titles, strict=False)}
        wants = tuple(Change(table=table.name, row=r, fields={field: state}) for r in chosen)
        return Goal(words={**words, "state": state}, wants=wants)

    return make


def tick(table: Table, count: int) -> Make:
    """Check boxes that are off ticked; words are titles, numbered from 2."""

    def make(sampler: Sampler, device: Device) -> Goal:
        field, rows = table.switches[0].name, device.tables[table.name]
        chosen = sampler.rng.sample(list(rows), count)
        for row in chosen:
            device.update(table.name, row, {field: "off"})
        titles = [rows[row][table.title] for row in chosen]
        words = {f"{table.title}{k or ''}": t for k, t in zip((0, 2, 3), titles, strict=False)}
        wants = tuple(Change(table=table.name, row=r, fields={field: "on"}) for r in chosen)
        return Goal(words=words, wants=wants)

    return make


def read(table: Table, field: str) -> Make:
    """A value of a record told."""

    def make(sampler: Sampler, device: Device) -> Goal:
        row = random_row(sampler, device, table)
        record = device.tables[table.name][row]
        words = {table.title: record[table.title]}
        return Goal(words=words, answer=record[field], look=table.path("detail", row))

    return make


def switch(keys: Sequence[str], count: int = 1) -> Make:
    """Switches of the device turned over; words ``switch``, ``state``, numbered from 2."""

    def make(sampler: Sampler, device: Device) -> Goal:
        words, wants = {}, []
        for k, key in enumerate(sampler.rng.sample(list(keys), count)):
            state = "off" if device.settings[key] == "on" else "on"
            suffix = str(k + 1) if k else ""
            words.update({f"switch{suffix}": key, f"state{suffix}": state})
            wants.append(Configure(key=key, value=state))
        return Goal(words=words, wants=tuple(wants))

    return make


def choice(key: str) -> Make:
    """Another option of a choice of the device; word ``option``."""

    def make(sampler: Sampler, device: Device) -> Goal:
        others = [option for option in PLACES[key].choices if option != device.settings[key]]
        option = sampler.pick(others)
        return Goal(words={"option": option}, wants=(Configure(key=key, value=option),))

    return make
