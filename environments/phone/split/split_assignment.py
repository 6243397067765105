"""Episodes of split facts: which apps take part, and which values each of them holds.

Two seeds that differ only in the last bit are *twins*: goal, team and acting app are equal, and all
values in the other apps differ. So the acting agent cannot infer the answer from what it sees.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import lru_cache
from zlib import crc32

from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.apps.record_apps import ALARM, CONTACT, EVENT, EXPENSE, NOTE, TASK
from swarm_ui.environments.phone.apps.search_apps import PAGE
from swarm_ui.environments.phone.assignment import Assignment
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.split.facts import computed
from swarm_ui.environments.phone.split.split_templates import NAMES, TEMPLATES, SplitTemplate
from swarm_ui.environments.phone.splits import parameter_split
from swarm_ui.environments.phone.tasks.goal import Create, Goal, Source
from swarm_ui.environments.phone.tasks.template import Template
from swarm_ui.errors import ConfigError

SPLIT_APPS = (
    "browser", "calendar", "notes", "files", "contacts", "messages", "expenses", "clock", "tasks",
    "settings",
)  # fmt: skip
"""The apps of a team of ten. No test app of the phone is among them."""
LEAST_AGENTS, MOST_AGENTS = 4, len(SPLIT_APPS)
_ROWS = (1, 3)
"""Minimum and maximum number of records of each table that are not related to the task."""
_WRONG: dict[str, tuple[Table, str, str]] = {
    "browser": (PAGE, "name", "price"),
    "calendar": (EVENT, "title", "place"),
    "notes": (NOTE, "title", "body"),
    "contacts": (CONTACT, "name", "email"),
    "messages": (MESSAGE, "to", "text"),
    "expenses": (EXPENSE, "item", "amount"),
    "clock": (ALARM, "label", "time"),
    "tasks": (TASK, "task", ""),
    "files": (APPS["files"].tables[0], "name", ""),
}
"""App -> where its wrong value is: the table, the field with the name, and the field with the
value. If the field of the value is empty, the value follows the name in the same field."""


class SplitAssignment(Assignment, frozen=True, kw_only=True):
    """A task with its parameters, for a team with one app for each agent."""

    acting: str
    """The app that can be operated."""
    team: tuple[str, ...]
    """The apps of the team in the order of :data:`SPLIT_APPS`."""
    whole: bool
    """Whether one agent operates all apps, one at a time, on one screen."""


@lru_cache(maxsize=1024)
def split_assign(task: str, seed: int, *, agents: int, whole: bool = False) -> SplitAssignment:
    """Draw the parameters of a task; equal arguments give the same assignment.

    It is kept, because a study plays one episode with many graphs. Episodes change only clones of
    its device.

    Raises:
        ConfigError: the task does not exist, the seed belongs to no split, or there are too few or
            too many agents.
    """
    check_agents(agents)
    spec = TEMPLATES.get(task)
    if spec is None:
        raise ConfigError(f"phone-split: no task {task!r}; expected one of {', '.join(TEMPLATES)}")
    salt = crc32(task.encode(), seed >> 1 & 0xFFFFFFFF)
    split = parameter_split(seed)
    common = Sampler(random.Random(salt << 32 | seed >> 1), split)
    team = _team(spec, agents, common)
    device = Device(tuple(common.rng.sample(team, len(team))))
    _fill(device, APPS[spec.acting], common)
    text = common.pick(spec.goals)
    names = [fact.name(common) for fact in spec.facts]
    given = _given(spec, common)
    hidden = Sampler(random.Random(salt << 33 | seed), split)
    hidden.values.update(common.values)
    sources = _hide(spec, names, device, team, hidden)
    values = [source.value for source in sources]
    fills = {
        field: computed(fill.rule, [values[k] for k in fill.of])
        for field, fill in spec.fills.items()
    }
    words = {**given, **dict(zip(NAMES, names, strict=False))}
    if not whole:
        device.show((Screen(spec.acting),))
    goal = Goal(
        words=words,
        wants=(Create(table=spec.into.name, fields={**given, **fills}),),
        sources=tuple(sources) if whole else (),
    )
    return SplitAssignment(
        template=_template(spec, goal, whole),
        text=text.format_map(words),
        goal=goal,
        start=device,
        parameters=frozenset(hidden.values),
        salt=salt,
        acting=spec.acting,
        team=team,
        whole=whole,
    )


def check_agents(agents: int) -> None:
    """Raise ``ConfigError`` if a team cannot have this number of agents."""
    if not LEAST_AGENTS <= agents <= MOST_AGENTS:
        raise ConfigError(
            f"phone-split: expected {LEAST_AGENTS} to {MOST_AGENTS} agents, got {agents}"
        )


def _team(spec: SplitTemplate, agents: int, sampler: Sampler) -> tuple[str, ...]:
    """The apps of the task and some others."""
    needed = {spec.acting, *spec.sources}
    others = [app for app in SPLIT_APPS if app not in needed]
    needed.update(sampler.rng.sample(others, agents - len(needed)))
    return tuple(app for app in SPLIT_APPS if app in needed)


def _given(spec: SplitTemplate, sampler: Sampler) -> dict[str, str]:
    """Values of the fields that the goal gives."""
    by_name = {field.name: field for field in spec.into.form}
    return {name: by_name[name].random_value(sampler) for name in spec.given}


def _hide(
    spec: SplitTemplate,
    names: Sequence[str],
    device: Device,
    team: Sequence[str],
    sampler: Sampler,
) -> list[Source]:
    """Fill all apps but the acting one. Returns the facts.

    Every app that holds no fact has a record with the name of one fact and a wrong value of the
    same kind.
    """
    found: dict[int, Source] = {}
    for app in team:
        if app == spec.acting:
            continue
        own = {k: fact for k, fact in enumerate(spec.facts) if fact.app == app}
        rows: dict[int | None, tuple[Table, Row]] = {}
        for k, fact in own.items():
            known = {fact.table.title: names[k], fact.field: fact.value(sampler)}
            rows[k] = (fact.table, _record(fact.table, sampler, known))
        if not own and app in _WRONG:
            k = sampler.pick(range(len(names)))
            rows[None] = _wrong(app, names[k], spec.facts[k].value(sampler), sampler)
        _fill(device, APPS[app], sampler)
        for number, key in _mixed_in(device, rows.items(), sampler):
            if number is not None:
                fact, row = spec.facts[number], rows[number][1]
                found[number] = Source.of(fact.table, key, row, fact.field)
    return [found[k] for k in range(len(spec.facts))]


def _wrong(app: str, name: str, value: str, sampler: Sampler) -> tuple[Table, Row]:
    """A record of another app with this name and a wrong value."""
    table, named, field = _WRONG[app]
    known = {named: name, field: value} if field else {named: f"{name} {value}"}
    return table, _record(table, sampler, known)


def _record(table: Table, sampler: Sampler, known: Row) -> Row:
    """A record with some known values. A page is bookmarked, so that it can be opened."""
    app = APPS[table.app]
    if app.sample is not None or table == app.tables[0]:
        row = app.record(sampler, table)
    else:
        row = {field.name: field.random_value(sampler) for field in table.fields}
    marked = {"bookmarked": "on"} if table is PAGE else {}
    return {**row, **known, **marked}


def _fill(device: Device, app: App, sampler: Sampler) -> None:
    app.fill(device, sampler, *_ROWS)


def _mixed_in(
    device: Device,
    rows: Iterable[tuple[int | None, tuple[Table, Row]]],
    sampler: Sampler,
) -> list[tuple[int | None, int]]:
    """Store records at random places of their tables; returns the identity of each."""
    placed = []
    for label, (table, row) in rows:
        key = device.insert(table.name, row)
        stored = list(device.tables[table.name].items())
        sampler.rng.shuffle(stored)
        device.tables = {**device.tables, table.name: dict(stored)}
        placed.append((label, key))
    return placed


def _template(spec: SplitTemplate, goal: Goal, whole: bool) -> Template:
    """The template of an assignment, for the budget of steps."""
    # On one screen: home, the app, the record and its value, for every fact.
    steps = spec.steps + (4 * len(spec.facts) + 2 if whole else 0)
    return Template(
        name=spec.name,
        split=spec.split,
        apps=(*spec.sources, spec.acting),
        make=lambda sampler, device: goal,
        steps=steps,
        tags=("across", "form"),
        goals=spec.goals,
    )
