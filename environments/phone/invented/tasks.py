"""The tasks of an invented device: templates for every app, and for pairs of apps."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any
from zlib import crc32

import msgspec

from swarm_ui.environments.phone.invented.devices import BLIND, invent, words_of
from swarm_ui.environments.phone.invented.goals import crossed, draw_of, joined
from swarm_ui.environments.phone.invented.wordings import ClauseSet, Wordings
from swarm_ui.environments.phone.kinds import KINDS, About, Draw, Template
from swarm_ui.environments.phone.state import App

_USUAL, _LONG = (3, 5), (9, 12)
"""Minimum and maximum number of records, in most lists and in those that must be scrolled."""
_SHOWN = (5, 6, 7, 8)
"""Number of apps on the home screen of an episode."""
_PAIRED = ("create", "edit", "delete", "toggle", "check", "setting", "choice")
"""Kinds that can be half of a compound task."""


class _Task(msgspec.Struct, frozen=True):
    """A task of one app."""

    kind: str
    about: About
    steps: int
    """Most steps of the solver."""
    rows: tuple[int, int] = _USUAL

    @property
    def name(self) -> str:
        about = self.about.app.name if self.about.table is None else self.about.table.name
        return f"{self.kind}-{about.replace(' ', '-')}"

    def draw(self, wordings: ClauseSet, *, part: bool = False) -> Draw:
        return draw_of(self.kind.removesuffix("-far"), self.about, wordings, part=part)


@lru_cache(maxsize=2048)
def templates(number: int, wordings: Wordings) -> Mapping[str, Template]:
    """All tasks of a device by name, such as ``invented-17-create-ledger``.

    A template is a kind of goal in one app, or a pair of goals. If the app has several tables, the
    goal is about one of them. Parameters and wording are drawn for each episode.
    """
    device = invent(number)
    clauses: ClauseSet = "blind" if number >= BLIND else wordings
    made: dict[str, Template] = {}
    halves: dict[str, _Task] = {}

    def add(name: str, abouts: tuple[About, ...], draw: Draw, steps: int, **options: Any) -> None:
        full = f"invented-{number}-{name}"
        made[full] = Template(
            name=full,
            split="invented",
            apps=tuple(dict.fromkeys(about.app.name for about in abouts)),
            draw=draw,
            steps=steps,
            texts=("{text}",),
            others=tuple(device.apps),
            shown=_SHOWN,
            catalogue=device,
            **options,
        )

    for app in device.apps.values():
        for one in _tasks_of(app, words_of(number).setting_switches):
            add(one.name, (one.about,), one.draw(clauses), one.steps, kind=one.kind, rows=one.rows)
            if one.kind in _PAIRED:
                halves[one.name] = one
    rng = random.Random(f"invented tasks {number}")
    for kind, origin, into in _crossings(device.apps, rng):
        steps = 9 + len(origin.records.trail) + len(into.records.trail)
        name = f"{kind}-{origin.records.name}-{into.records.name}"
        add(name, (origin, into), partial(crossed, kind, origin, into, clauses), steps, kind=kind)
    for one, two in _pairings(halves, rng):
        if one.about.table is not None and one.about.table is two.about.table:
            continue  # the two goals could be about the same record
        first, second = (task.draw(clauses, part=True) for task in (one, two))
        draw = joined(first, second, clauses)
        name, steps = f"both-{one.name}-{two.name}", one.steps + two.steps + 1
        add(name, (one.about, two.about), draw, steps, kind="both")
    return made


def _tasks_of(app: App, possible_switches: tuple[str, ...]) -> Iterator[_Task]:
    """The tasks of one app."""
    plain = About(app=app)
    yield _Task("open", plain, 1)
    for table in app.tables:
        yield from _record_tasks(About(app=app, table=table))
    deepest = max((len(place.path) for place in app.settings.values()), default=0)
    if app.switches:
        yield _Task("setting", plain, KINDS["setting"].steps(deepest))
        yield _Task("absent", About(app=app, fields=possible_switches), deepest)
        if len(app.switches) > 2:
            yield _Task("settings", About(app=app, count=2), 3 * deepest)
    if app.choices:
        yield _Task("choice", plain, KINDS["choice"].steps(deepest))


def _record_tasks(about: About) -> Iterator[_Task]:
    table = about.records
    way, form = len(table.trail) + (2 if table.search else 0), len(table.form)

    def task(name: str, several: int = 0, more: int = 0, rows: tuple[int, int] = _USUAL) -> _Task:
        kind = KINDS[name.rstrip("23").removesuffix("-full")]
        count = int(name[-1]) if name[-1].isdigit() else 1
        found = msgspec.structs.replace(about, count=count)
        return _Task(name, found, kind.steps(way, several) + more, rows)

    yield task("create", form)
    if form > 2:
        yield task("create-full", form)
    yield task("create2", 2 * form, 2)
    yield task("delete")
    yield task("delete2", 0, way + 3)
    yield task("missing")
    if table.checklist:
        yield from (task("check", 1), task("check2", 2), task("check3", 3, rows=(4, 6)))
        return
    yield task("show")
    far = [task("delete")]
    if table.edit:
        yield task("edit")
        far.append(task("edit"))
        if form > 2:
            yield task("edit2", 0, 1)
    if form > 1:
        yield task("read")
        far.append(task("read"))
    if table.switches:
        yield from (task("toggle"), task("state"))
        far.append(task("toggle"))
    if not table.search:
        one = far[crc32(f"{table.name} {form}".encode()) % len(far)]
        yield _Task(f"{one.kind}-far", about, one.steps + 1, _LONG)


def _crossings(apps: Mapping[str, App], rng: random.Random) -> Iterator[tuple[str, About, About]]:
    """Pairs of apps between which values are copied."""
    abouts = [
        About(app=app, table=app.tables[0])
        for app in apps.values()
        if app.tables and any(field.kind == "text" for field in app.tables[0].form[1:])
    ]
    for origin in abouts:
        if origin.records.checklist:
            continue
        others = [about for about in abouts if about.app is not origin.app]
        editable = [about for about in others if about.records.edit]
        for kind, targets in (("copy", others), ("carry", editable)):
            if targets:
                yield kind, origin, rng.choice(targets)


def _pairings(halves: Mapping[str, _Task], rng: random.Random) -> Iterator[tuple[_Task, _Task]]:
    """Pairs of tasks for compound tasks: about one pair for every four tasks."""
    names = list(halves)
    for name in names:
        if rng.random() < 0.6:
            other = rng.choice(names)
            if other != name:
                yield halves[name], halves[other]
