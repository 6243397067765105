"""The tasks of an invented device: templates for every app, and for pairs of apps."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import lru_cache
from zlib import crc32

import msgspec

from swarm_ui.environments.phone.invented.devices import (
    BLIND,
    InventedApp,
    InventedDevice,
    invent,
)
from swarm_ui.environments.phone.invented.goals import Owner, crossed, draw_of, joined
from swarm_ui.environments.phone.invented.wordings import ClauseSet, Wordings
from swarm_ui.environments.phone.kinds import KINDS, Draw, Template

_USUAL, _LONG = (3, 5), (9, 12)
"""Minimum and maximum number of records, in most lists and in those that must be scrolled."""
_SHOWN = (5, 6, 7, 8)
"""Number of apps on the home screen of an episode."""
_PAIRED = ("create", "edit", "delete", "toggle", "check", "setting", "choice")
"""Kinds that can be half of a compound task."""


class _Planned(msgspec.Struct, frozen=True):
    """A task of one app."""

    kind: str
    owner: Owner
    steps: int
    """Most steps of the solver."""
    rows: tuple[int, int] = _USUAL

    @property
    def name(self) -> str:
        table = self.owner.table
        about = self.owner.made.name if table is None else table.name
        return f"{self.kind}-{about.replace(' ', '-')}"

    def draw(self, *, part: bool = False) -> Draw:
        owner = self.owner.half() if part else self.owner
        return draw_of(self.kind.removesuffix("-far"), owner)


@lru_cache(maxsize=2048)
def templates(number: int, wordings: Wordings) -> Mapping[str, Template]:
    """All tasks of a device by name, such as ``invented-17-create-ledger``.

    A template is a kind of goal in one app, or a pair of goals. If the app has several tables, the
    goal is about one of them. Parameters and wording are drawn for each episode.
    """
    device = invent(number)
    clauses: ClauseSet = "blind" if number >= BLIND else wordings
    every = tuple(app.name for app in device.apps)
    made: dict[str, Template] = {}
    halves: dict[str, _Planned] = {}

    def add(
        name: str, kind: str, owners: tuple[Owner, ...], draw: Draw, steps: int,
        rows: tuple[int, int] = _USUAL,
    ) -> None:  # fmt: skip
        made[f"invented-{number}-{name}"] = Template(
            name=f"invented-{number}-{name}",
            split="invented",
            kind=kind,
            apps=tuple(dict.fromkeys(owner.made.name for owner in owners)),
            draw=draw,
            steps=steps,
            texts=("{text}",),
            rows=rows,
            others=every,
            shown=_SHOWN,
        )

    for app in device.apps:
        for one in _planned(app, clauses):
            add(one.name, one.kind, (one.owner,), one.draw(), one.steps, one.rows)
            if one.kind in _PAIRED:
                halves[one.name] = one
    rng = random.Random(f"invented tasks {number}")
    for kind, origin, into in _crossings(device, clauses, rng):
        steps = 9 + len(origin.records.trail) + len(into.records.trail)
        name = f"{kind}-{origin.records.name}-{into.records.name}"
        add(name, kind, (origin, into), crossed(kind, origin, into), steps)
    for one, two in _pairings(halves, rng):
        if one.owner.table is not None and one.owner.table is two.owner.table:
            continue  # the two goals could be about the same record
        draw = joined(one.draw(part=True), two.draw(part=True), clauses)
        owners, steps = (one.owner, two.owner), one.steps + two.steps + 1
        add(f"both-{one.name}-{two.name}", "both", owners, draw, steps)
    return made


def _planned(app: InventedApp, wordings: ClauseSet) -> Iterator[_Planned]:
    """The tasks of one app."""
    plain = Owner(app, None, wordings)
    yield _Planned("open", plain, 1)
    for table in app.app.tables:
        yield from _record_tasks(Owner(app, table, wordings))
    deepest = max((len(place.path) for place in app.app.settings.values()), default=0)
    if app.app.switches:
        yield _Planned("setting", plain, KINDS["setting"].steps(deepest))
        yield _Planned("absent", plain, deepest)
        if len(app.app.switches) > 2:
            yield _Planned("settings", plain, 3 * deepest)
    if app.app.choices:
        yield _Planned("choice", plain, KINDS["choice"].steps(deepest))


def _record_tasks(owner: Owner) -> Iterator[_Planned]:
    table = owner.records
    way, form = len(table.trail) + 2 * owner.made.searched, len(table.form)

    def plan(name: str, several: int = 0, more: int = 0) -> _Planned:
        kind = KINDS[name.rstrip("23").removesuffix("-full")]
        return _Planned(name, owner, kind.steps(way, several) + more)

    yield plan("create", form)
    if form > 2:
        yield plan("create-full", form)
    yield plan("create2", 2 * form, 2)
    yield plan("delete")
    yield plan("delete2", 0, way + 3)
    yield plan("missing")
    if table.checklist:
        yield plan("check", 1)
        yield plan("check2", 2)
        yield msgspec.structs.replace(plan("check3", 3), rows=(4, 6))
        return
    yield plan("show")
    far = [plan("delete")]
    if table.edit:
        yield plan("edit")
        far.append(plan("edit"))
        if form > 2:
            yield plan("edit2", 0, 1)
    if form > 1:
        yield plan("read")
        far.append(plan("read"))
    if table.switches:
        yield plan("toggle")
        yield plan("state")
        far.append(plan("toggle"))
    if not owner.made.searched:
        one = far[crc32(f"{table.name} {form}".encode()) % len(far)]
        yield _Planned(f"{one.kind}-far", owner, one.steps + 1, _LONG)


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
        others = [owner for owner in owners if owner.made is not origin.made]
        if others:
            yield "copy", origin, rng.choice(others)
        editable = [owner for owner in others if owner.records.edit]
        if editable:
            yield "carry", origin, rng.choice(editable)


def _pairings(
    halves: Mapping[str, _Planned], rng: random.Random
) -> Iterator[tuple[_Planned, _Planned]]:
    """Pairs of tasks for compound tasks: about one pair for every four tasks."""
    names = list(halves)
    for name in names:
        if rng.random() < 0.6:
            other = rng.choice(names)
            if other != name:
                yield halves[name], halves[other]
