"""The tasks of an invented device: templates for every app, and for pairs of apps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from zlib import crc32

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.invented import app_goals, record_goals
from swarm_ui.environments.phone.invented.goal_owner import Make, Owner
from swarm_ui.environments.phone.invented.invented_apps import (
    BLIND,
    InventedApp,
    InventedDevice,
    invent,
)
from swarm_ui.environments.phone.invented.wordings import ClauseSet, Wordings
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Goal
from swarm_ui.environments.phone.tasks.template import Template

LONG_LIST = (9, 12)
"""Minimum and maximum number of records in the lists of tasks whose names end in ``-far``."""
_PAIRED = ("create", "edit", "delete", "toggle", "check", "setting", "choice")
"""Kinds that can be half of a compound task."""


@lru_cache(maxsize=2048)
def templates(number: int, apps: int, wordings: Wordings) -> Mapping[str, Template]:
    """All tasks of a device by name, such as ``invented-17-create-ledger``.

    A template is a kind of goal in one app, or a pair of goals. If the app has several tables, the
    goal is about one of them. Parameters and wording are drawn for each episode.
    """
    device = invent(number, apps)
    clauses: ClauseSet = "blind" if number >= BLIND else wordings
    made: dict[str, Template] = {}
    halves: dict[str, tuple[Make, Owner, int]] = {}
    for app in device.apps:
        for kind, about, owner, make, steps, rows in _kinds(app, clauses):
            name = f"invented-{number}-{kind}-{about.replace(' ', '-')}"
            made[name] = _template(name, (app,), partial(make, owner), steps, kind, rows)
            if kind in _PAIRED:
                halves[f"{kind}-{about.replace(' ', '-')}"] = (make, owner, steps)
    rng = random.Random(f"invented tasks {number}")
    for kind, origin, into in _crossings(device, clauses, rng):
        cross = app_goals.copy if kind == "copy" else app_goals.carry
        name = f"invented-{number}-{kind}-{origin.records.name}-{into.records.name}"
        steps = 9 + len(origin.records.trail) + len(into.records.trail)
        made[name] = _template(
            name, (origin.app, into.app), partial(cross, origin, into), steps, kind
        )
    for one, two in _pairings(halves, rng):
        first, second = halves[one], halves[two]
        if first[1].table is not None and first[1].table is second[1].table:
            continue  # the two goals could be about the same record
        name = f"invented-{number}-both-{one}-{two}"
        build = partial(app_goals.pair, first[:2], second[:2])
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


Kind = tuple[str, str, Owner, Make, int, tuple[int, int]]
"""Kind, what it is about, owner, goal, most steps of the solver, records in the app's tables."""


def _kinds(app: InventedApp, wordings: ClauseSet) -> Iterator[Kind]:
    """The tasks of one app."""
    plain = Owner(app, None, wordings)
    usual = (3, 5)
    yield "open", app.name, plain, app_goals.open_app, 1, usual
    for table in app.app.tables:
        yield from _record_kinds(Owner(app, table, wordings))
    deepest = max((len(place.path) for place in app.app.settings.values()), default=0)
    if app.switches:
        yield "setting", app.name, plain, partial(app_goals.setting, 1), deepest + 1, usual
        yield "absent", app.name, plain, app_goals.no_switch, deepest, usual
        if len(app.switches) > 2:
            yield "settings", app.name, plain, partial(app_goals.setting, 2), 3 * deepest, usual
    if app.choices:
        yield "choice", app.name, plain, app_goals.choice, deepest + 1, usual


def _record_kinds(owner: Owner) -> Iterator[Kind]:
    table, usual = owner.records, (3, 5)
    name, way = table.name, len(table.trail) + 2 * owner.app.searched
    form = len(table.form)
    yield "create", name, owner, partial(record_goals.create, False), way + form + 2, usual
    if form > 2:
        yield "create-full", name, owner, partial(record_goals.create, True), way + form + 2, usual
    yield "create2", name, owner, record_goals.create_two, way + 2 * form + 4, usual
    yield "delete", name, owner, record_goals.delete, way + 3, usual
    yield "delete2", name, owner, record_goals.delete_two, 2 * way + 6, usual
    yield "missing", name, owner, record_goals.missing, way, usual
    if table.checklist:
        yield "check", name, owner, partial(record_goals.check, 1), way + 1, usual
        yield "check2", name, owner, partial(record_goals.check, 2), way + 2, usual
        yield "check3", name, owner, partial(record_goals.check, 3), way + 3, (4, 6)
        return
    yield "show", name, owner, record_goals.show, way + 1, usual
    far: list[Kind] = [("delete-far", name, owner, record_goals.delete, way + 4, LONG_LIST)]
    if table.edit:
        yield "edit", name, owner, record_goals.edit, way + 4, usual
        far.append(("edit-far", name, owner, record_goals.edit, way + 5, LONG_LIST))
        if form > 2:
            yield "edit2", name, owner, record_goals.edit_two, way + 5, usual
    if form > 1:
        yield "read", name, owner, record_goals.read, way + 2, usual
        far.append(("read-far", name, owner, record_goals.read, way + 3, LONG_LIST))
    if table.switches:
        yield "toggle", name, owner, record_goals.toggle, way + 2, usual
        yield "state", name, owner, record_goals.state, way + 2, usual
        far.append(("toggle-far", name, owner, record_goals.toggle, way + 3, LONG_LIST))
    if not owner.app.searched:
        yield far[crc32(f"{name} {form}".encode()) % len(far)]


def _crossings(
    device: InventedDevice, wordings: ClauseSet, rng: random.Random
) -> Iterator[tuple[str, Owner, Owner]]:
    """Pairs of apps between which values are copied."""
    owners = [
        Owner(app, app.app.tables[0], wordings)
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
    """Pairs of tasks for compound tasks: about one pair for every four tasks."""
    names = list(halves)
    for name in names:
        if rng.random() < 0.6:
            other = rng.choice(names)
            if other != name:
                yield name, other
