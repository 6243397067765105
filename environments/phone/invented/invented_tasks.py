"""The tasks of an invented device: goals with random parameters, for every app and for pairs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial

import msgspec

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.invented.invented_apps import InventedApp, InventedDevice, invent
from swarm_ui.environments.phone.invented.wordings import (
    Wordings,
    both,
    listed,
    phrase,
    several,
)
from swarm_ui.environments.phone.invented.words import SETTING_SWITCHES
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import (
    AppInFront,
    Change,
    Configure,
    Create,
    Delete,
    Goal,
    ScreenInFront,
    Source,
)
from swarm_ui.environments.phone.tasks.template import Template

LONG_LIST = (9, 12)
"""Records in the lists of tasks that end in ``-far``."""
_PAIRED = ("create", "edit", "delete", "toggle", "check", "setting", "choice")
"""Kinds that can be half of a compound task."""


class _Owner(msgspec.Struct, frozen=True):
    """An app, a table of it if the task is about one, and how goals are worded."""

    app: InventedApp
    table: Table | None
    wordings: Wordings
    part: bool = False
    """Whether its goals are parts of a longer one."""

    @property
    def records(self) -> Table:
        assert self.table is not None
        return self.table

    @property
    def mention(self) -> bool:
        """Whether a goal must name the app, because nothing else tells where to look."""
        table = self.table
        return not (self.app.named and table is not None and table is self.app.app.tables[0])

    def slots(self, **words: str) -> dict[str, str]:
        """Words for a goal text."""
        found = {"app": self.app.name, **words}
        table = self.table
        if table is not None:
            found |= {"record": table.name, "delete": table.delete, "add": table.add}
            found |= {"edit": table.edit or "change", "add_verb": table.add.split()[0]}
        if found.get("add_verb") == "new":
            found["add_verb"] = "add"
        return found

    def text(self, kind: str, rng: random.Random, **words: str) -> str:
        slots = self.slots(**words)
        return phrase(
            kind, slots, rng, wordings=self.wordings, mention=self.mention, part=self.part
        )

    def half(self) -> _Owner:
        """The same for goals that are parts of a longer one."""
        return msgspec.structs.replace(self, part=True)


Make = Callable[[_Owner, Sampler, Device], Goal]


def record(sampler: Sampler, table: Table) -> dict[str, str]:
    """Random values for all fields."""
    return {field.name: field.random_value(sampler) for field in table.fields}


def _row(sampler: Sampler, device: Device, table: Table) -> tuple[int, Mapping[str, str]]:
    rows = device.tables[table.name]
    key = sampler.pick(list(rows))
    return key, rows[key]


def _goal(text: str, **end: object) -> Goal:
    return msgspec.structs.replace(Goal(words={"goal": text}), **end)


def _given(sampler: Sampler, table: Table, least: int = 1) -> dict[str, str]:
    """The title and some other fields of a new record."""
    values = record(sampler, table)
    names = [field.name for field in table.form[1:]]
    count = max(least - 1, int(sampler.rng.random() * (min(3, len(names)) + 1)))
    chosen = sampler.rng.sample(names, min(count, len(names)))
    return {table.title: values[table.title], **{n: values[n] for n in names if n in chosen}}


def _free(table: Table) -> tuple[str, ...]:
    return tuple(field.name for field in table.form if field.kind == "text")


def _create(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table, rng = owner.records, sampler.rng
    fields = _given(sampler, table)
    words = listed(fields, rng, wordings=owner.wordings, free=_free(table))
    text = owner.text("create", rng, fields=words)
    return _goal(text, wants=(Create(table=table.name, fields=fields),))


def _edit(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table = owner.records
    key, row = _row(sampler, device, table)
    field, value = _changed(sampler, table, row)
    text = owner.text("edit", sampler.rng, title=row[table.title], field=field.name, value=value)
    return _goal(text, wants=(Change(table=table.name, row=key, fields={field.name: value}),))


def _changed(sampler: Sampler, table: Table, row: Mapping[str, str]) -> tuple[Field, str]:
    """A field of the form, and another value for it."""
    fields = table.form[1:] if len(table.form) > 1 and sampler.rng.random() < 0.85 else table.form
    field = sampler.pick(fields)
    value = field.random_value(sampler)
    while value == row[field.name]:
        value = field.random_value(sampler)
    return field, value


def _delete(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table = owner.records
    key, row = _row(sampler, device, table)
    text = owner.text("delete", sampler.rng, title=row[table.title])
    return _goal(text, wants=(Delete(table=table.name, row=key),))


def _delete_two(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table, rows = owner.records, device.tables[owner.records.name]
    chosen = sampler.rng.sample(list(rows), 2)
    titles = [rows[key][table.title] for key in chosen]
    title = several(titles, sampler.rng, wordings=owner.wordings)
    slots = owner.slots(title=title)
    text = phrase(
        "delete", slots, sampler.rng, wordings=owner.wordings, mention=owner.mention, free=()
    )
    return _goal(text, wants=tuple(Delete(table=table.name, row=key) for key in chosen))


def _create_two(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    half = owner.half()
    first, second = _create(half, sampler, device), _create(half, sampler, device)
    return _joined(first, second, owner, sampler)


def _joined(first: Goal, second: Goal, owner: _Owner, sampler: Sampler) -> Goal:
    texts = first.words["goal"], second.words["goal"]
    text = both(*texts, sampler.rng, wordings=owner.wordings)
    return _goal(text, wants=(*first.wants, *second.wants))


def _toggle(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table = owner.records
    key, row = _row(sampler, device, table)
    field, state = sampler.pick(table.switches).name, sampler.pick(("on", "on", "off"))
    device.update(table.name, key, {field: "off" if state == "on" else "on"})
    text = owner.text("toggle", sampler.rng, title=row[table.title], switch=field, state=state)
    return _goal(text, wants=(Change(table=table.name, row=key, fields={field: state}),))


def _check(count: int, owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table, rng = owner.records, sampler.rng
    field, rows = table.switches[0].name, device.tables[table.name]
    chosen = rng.sample(list(rows), count)
    for key in chosen:
        device.update(table.name, key, {field: "off"})
    titles = several([rows[key][table.title] for key in chosen], rng, wordings=owner.wordings)
    text = owner.text("check", rng, titles=titles, switch=field)
    wants = tuple(Change(table=table.name, row=key, fields={field: "on"}) for key in chosen)
    return _goal(text, wants=wants)


def _read(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table = owner.records
    key, row = _row(sampler, device, table)
    field = sampler.pick([field.name for field in table.form[1:]])
    text = owner.text("read", sampler.rng, title=row[table.title], field=field)
    return _goal(text, answer=row[field], look=table.path("detail", key))


def _state(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table = owner.records
    key, row = _row(sampler, device, table)
    field = sampler.pick(table.switches).name
    text = owner.text("state", sampler.rng, title=row[table.title], switch=field)
    return _goal(text, answer=row[field], look=table.path("detail", key))


def _show(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    table = owner.records
    key, row = _row(sampler, device, table)
    text = owner.text("show", sampler.rng, title=row[table.title])
    return _goal(text, wants=(ScreenInFront(path=table.path("detail", key)),))


def _missing(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    """A task about a record that does not exist."""
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
    return _goal(owner.text(sampler.pick(kinds), rng, **words), look=look, infeasible=True)


def _setting(count: int, owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    chosen = sampler.rng.sample(owner.app.switches, count)
    states = ["off" if device.settings[key] == "on" else "on" for key in chosen]
    texts = [
        phrase(
            "setting", owner.slots(switch=key, state=state), sampler.rng,
            wordings=owner.wordings, mention=number == 0, part=count > 1,
        )
        for number, (key, state) in enumerate(zip(chosen, states, strict=True))
    ]  # fmt: skip
    text = texts[0]
    if count == 2:
        text = both(*texts, sampler.rng, wordings=owner.wordings)
    wants = tuple(Configure(key=k, value=v) for k, v in zip(chosen, states, strict=True))
    return _goal(text, wants=wants)


def _choice(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    key = sampler.pick(owner.app.choices)
    options = owner.app.app.settings[key].choices
    option = sampler.pick([other for other in options if other != device.settings[key]])
    text = owner.text("choice", sampler.rng, switch=key, option=option)
    return _goal(text, wants=(Configure(key=key, value=option),))


def _no_switch(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    """A switch that does not exist; the text tells the screen on which it should be."""
    path = owner.app.app.settings[sampler.pick(owner.app.switches)].path
    absent = [key for key in SETTING_SWITCHES if key not in device.settings]
    words = {"switch": sampler.pick(absent), "state": sampler.pick(("on", "off"))}
    place = owner.app.name if len(path) == 1 else f"{path[-1].of} of {owner.app.name}"
    slots = {**owner.slots(**words), "app": place}
    text = phrase("setting", slots, sampler.rng, wordings=owner.wordings, mention=True)
    return _goal(text, look=path, infeasible=True)


def _open(owner: _Owner, sampler: Sampler, device: Device) -> Goal:
    text = owner.text("open", sampler.rng)
    return _goal(text, wants=(AppInFront(app=owner.app.name),))


def _copy(origin: _Owner, into: _Owner, sampler: Sampler, device: Device) -> Goal:
    """A value of a record, written into a new record of another app."""
    table, other, rng = origin.records, into.records, sampler.rng
    key, row = _row(sampler, device, table)
    field = sampler.pick([f.name for f in table.form[1:] if f.kind == "text"])
    slot = sampler.pick([f.name for f in other.form[1:] if f.kind == "text"])
    given = {other.title: record(sampler, other)[other.title]}
    words = {
        **_across(origin, into), "title": row[table.title], "field": field, "field2": slot,
        "fields": listed(given, rng, wordings=origin.wordings, free=_free(other)),
    }  # fmt: skip
    text = phrase("copy", words, rng, wordings=origin.wordings, mention=False)
    source = Source.of(table, key, row, field)
    want = Create(table=other.name, fields={slot: row[field], **given}, source=source)
    return _goal(text, wants=(want,))


def _carry(origin: _Owner, into: _Owner, sampler: Sampler, device: Device) -> Goal:
    """A value of a record, written into a record of another app."""
    table, other, rng = origin.records, into.records, sampler.rng
    key, row = _row(sampler, device, table)
    key2, row2 = _row(sampler, device, other)
    field = sampler.pick([f.name for f in table.form[1:] if f.kind == "text"])
    slot = sampler.pick([f.name for f in other.form[1:] if f.kind == "text"])
    words = {
        **_across(origin, into), "title": row[table.title], "field": field, "field2": slot,
        "title2": row2[other.title],
    }  # fmt: skip
    text = phrase("carry", words, rng, wordings=origin.wordings, mention=False)
    source = Source.of(table, key, row, field)
    want = Change(table=other.name, row=key2, fields={slot: row[field]}, source=source)
    return _goal(text, wants=(want,))


def _across(origin: _Owner, into: _Owner) -> dict[str, str]:
    """The words of two apps; the text names those whose names do not follow from the records."""
    words = origin.slots()
    words |= {f"{name}2": text for name, text in into.slots().items()}
    words["edit"], words["add_verb"] = words["edit2"], words["add_verb2"]
    words["from_app"] = f" in {origin.app.name}" if origin.mention else ""
    words["in_app2"] = f" in {into.app.name}" if into.mention else ""
    return words


def _pair(
    first: tuple[Make, _Owner], second: tuple[Make, _Owner], sampler: Sampler, device: Device
) -> Goal:
    one = first[0](first[1].half(), sampler, device)
    two = second[0](second[1].half(), sampler, device)
    return _joined(one, two, first[1], sampler)


@lru_cache(maxsize=2048)
def templates(number: int, apps: int, wordings: Wordings) -> Mapping[str, Template]:
    """All tasks of a device by name, such as ``invented-17-create-ledger``."""
    device = invent(number, apps)
    made: dict[str, Template] = {}
    halves: dict[str, tuple[Make, _Owner, int]] = {}
    for app in device.apps:
        for kind, about, owner, make, steps, rows in _kinds(app, wordings):
            name = f"invented-{number}-{kind}-{about.replace(' ', '-')}"
            made[name] = _template(name, (app,), partial(make, owner), steps, kind, rows)
            if kind in _PAIRED:
                halves[f"{kind}-{about.replace(' ', '-')}"] = (make, owner, steps)
    rng = random.Random(f"invented tasks {number}")
    for kind, origin, into in _crossings(device, wordings, rng):
        make = _copy if kind == "copy" else _carry
        name = f"invented-{number}-{kind}-{origin.records.name}-{into.records.name}"
        steps = 9 + len(origin.records.trail) + len(into.records.trail)
        made[name] = _template(
            name, (origin.app, into.app), partial(make, origin, into), steps, kind
        )
    for one, two in _pairings(halves, rng):
        first, second = halves[one], halves[two]
        if first[1].table is not None and first[1].table is second[1].table:
            continue  # the two goals could be about one record
        name = f"invented-{number}-both-{one}-{two}"
        build = partial(_pair, first[:2], second[:2])
        owners = (first[1].app, second[1].app)
        made[name] = _template(name, owners, build, first[2] + second[2] + 1, "both")
    return made


def _template(
    name: str,
    apps: tuple[InventedApp, ...],
    make: Callable[[Sampler, Device], Goal],
    steps: int,
    tags: str,
    rows: tuple[int, int] = (3, 5),
) -> Template:
    return Template(
        name=name,
        split="invented",
        apps=tuple(dict.fromkeys(app.name for app in apps)),
        make=make,
        steps=steps,
        tags=tuple(tags.split("-")),
        goals=("{goal}",),
        rows=rows,
    )


Kind = tuple[str, str, _Owner, Make, int, tuple[int, int]]
"""Kind, what it is about, owner, goal, most steps of the solver, records in the app's tables."""


def _kinds(app: InventedApp, wordings: Wordings) -> Iterator[Kind]:
    """The tasks of one app."""
    plain = _Owner(app, None, wordings)
    usual = (3, 5)
    yield "open", app.name, plain, _open, 1, usual
    for table in app.app.tables:
        yield from _record_kinds(_Owner(app, table, wordings))
    deepest = max((len(place.path) for place in app.app.settings.values()), default=0)
    if app.switches:
        yield "setting", app.name, plain, partial(_setting, 1), deepest + 1, usual
        yield "absent", app.name, plain, _no_switch, deepest, usual
        if len(app.switches) > 2:
            yield "settings", app.name, plain, partial(_setting, 2), 2 * deepest + 2, usual
    if app.choices:
        yield "choice", app.name, plain, _choice, deepest + 1, usual


def _record_kinds(owner: _Owner) -> Iterator[Kind]:
    table, usual = owner.records, (3, 5)
    name, way = table.name, len(table.trail) + 2 * owner.app.searched
    form = len(table.form)
    yield "create", name, owner, _create, way + form + 2, usual
    yield "create2", name, owner, _create_two, way + 2 * form + 4, usual
    yield "delete", name, owner, _delete, way + 3, usual
    yield "delete2", name, owner, _delete_two, 2 * way + 6, usual
    yield "missing", name, owner, _missing, way, usual
    if table.checklist:
        yield "check", name, owner, partial(_check, 1), way + 1, usual
        yield "check2", name, owner, partial(_check, 2), way + 2, usual
        yield "check3", name, owner, partial(_check, 3), way + 3, (4, 6)
        return
    yield "show", name, owner, _show, way + 1, usual
    if table.edit:
        yield "edit", name, owner, _edit, way + 4, usual
    if form > 1:
        yield "read", name, owner, _read, way + 2, usual
        if not owner.app.searched:
            yield "read-far", name, owner, _read, way + 3, LONG_LIST
    if table.switches:
        yield "toggle", name, owner, _toggle, way + 2, usual
        yield "state", name, owner, _state, way + 2, usual
    if not owner.app.searched:
        yield "delete-far", name, owner, _delete, way + 4, LONG_LIST


def _crossings(
    device: InventedDevice, wordings: Wordings, rng: random.Random
) -> Iterator[tuple[str, _Owner, _Owner]]:
    """Pairs of apps between which values are copied."""
    owners = [
        _Owner(app, app.app.tables[0], wordings)
        for app in device.apps
        if app.app.tables and any(f.kind == "text" for f in app.app.tables[0].form[1:])
    ]
    sources = [owner for owner in owners if not owner.records.checklist]
    for origin in sources:
        others = [owner for owner in owners if owner.app is not origin.app]
        if others:
            yield "copy", origin, rng.choice(others)
        editable = [owner for owner in others if owner.records.edit]
        if editable:
            yield "carry", origin, rng.choice(editable)


def _pairings(halves: Mapping[str, object], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Two tasks for each compound task, about one for every four tasks."""
    names = list(halves)
    for name in names:
        if rng.random() < 0.6:
            other = rng.choice(names)
            if other != name:
                yield name, other
