"""Split facts: a phone whose apps are open side by side, one for each agent of a team.

    phone = SplitPhone(agents=6)
    screen = await phone.reset(task="split-phone-message", seed=7)

Only the app in which a task ends is operated. The values that it needs are on the screens of other
agents, so a message must carry them. Further agents hold similar, wrong values.

Two seeds that differ only in the last bit are *twins*: goal, team and acting app are equal, and all
values in the other apps differ. So the acting agent cannot infer the answer from what it sees.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal
from zlib import crc32

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.base import split_of
from swarm_ui.environments.phone.apps import PHONE, TABLES
from swarm_ui.environments.phone.environment import PhoneEnvironment
from swarm_ui.environments.phone.goal import Goal, Want
from swarm_ui.environments.phone.kinds import Assignment
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import Device, Row, Screen, Table
from swarm_ui.environments.phone.view import View
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation

SPLIT_APPS = (
    "browser", "calendar", "notes", "files", "contacts", "messages", "expenses", "clock", "tasks",
    "settings",
)  # fmt: skip
"""The apps of a team of ten. No test app of the phone is among them."""
LEAST_AGENTS, MOST_AGENTS = 4, len(SPLIT_APPS)
NAMES = "abc"
"""Placeholders of the names of the facts in goal texts, in order."""
SplitOf = Literal["train", "validation", "new_templates"]


# -- templates ------------------------------------------------------------------------------------

Rule = Literal["join", "sum", "least", "most", "first", "last"]
"""How the facts give the value that the goal needs. ``join``: all values with spaces between them
(one fact: its value). ``sum``, ``least`` and ``most`` are for amounts; ``first`` and ``last`` are
for times such as ``07:45``."""
RULES: Mapping[Rule, Callable[[Sequence[str]], str]] = {
    "join": " ".join,
    "sum": lambda values: str(sum(map(Decimal, values), Decimal())),
    "least": lambda values: min(values, key=Decimal),
    "most": lambda values: max(values, key=Decimal),
    "first": min,
    "last": max,
}


class Fact(msgspec.Struct, frozen=True):
    """One field of a record that the goal names by its title."""

    table: Table
    field: str
    name: Callable[[Sampler], str]
    """Draws the title of the record, which is in the goal."""
    value: Callable[[Sampler], str]
    """Draws the value, which is only on the screen of the app. Wrong values are drawn alike."""

    @property
    def app(self) -> str:
        return self.table.app


class SplitTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A task that needs facts from apps other than the one it ends in: a new record there.

    The goal names the apps and the records, but none of the values. The needed senders of all
    templates together form a graph without cycles: browser, calendar and notes, then contacts, then
    messages, then expenses, clock and tasks.
    """

    name: str
    split: SplitOf
    into: Table
    """The table of the new record; its app is the acting one."""
    facts: Sequence[Fact]
    fills: Mapping[str, Mapping[str, Any]]
    """Fields of the new record that are computed from facts: by a ``rule``, ``of`` the facts at
    some positions."""
    given: Sequence[str] = ()
    """Fields of the new record whose values the goal contains, as placeholders of these names."""
    goals: Sequence[str]

    @property
    def acting(self) -> str:
        """The app that the task ends in."""
        return self.into.app

    @property
    def sources(self) -> tuple[str, ...]:
        """The other apps that it needs, without repetition."""
        return tuple(dict.fromkeys(fact.app for fact in self.facts))

    def fields(self, words: Mapping[str, str], values: Sequence[str]) -> dict[str, str]:
        """The fields of the new record, given the words of the goal and the values of all facts."""
        fills = {
            field: RULES[fill["rule"]]([values[k] for k in fill["of"]])
            for field, fill in self.fills.items()
        }
        return {**{name: words[name] for name in self.given}, **fills}


_READ = msgspec.json.decode(files(__package__).joinpath("split_templates.json").read_bytes())
_FACTS: Mapping[str, Fact] = {
    name: Fact(TABLES[table], field, getattr(Sampler, title), getattr(Sampler, value))
    for name, (table, field, title, value) in _READ["facts"].items()
}
_WRONG: Mapping[str, tuple[str, str, str]] = _READ["wrong"]
"""App -> where its wrong value is: the table, the field with the name, and the field with the
value. If the field of the value is empty, the value follows the name in the same field."""


SPLIT_TEMPLATES: Mapping[str, SplitTemplate] = {
    entry["name"]: SplitTemplate(
        **{**entry, "into": TABLES[entry["into"]], "facts": [_FACTS[k] for k in entry["facts"]]}
    )
    for entry in _READ["templates"]
}


def split_tasks(split: SplitOf) -> tuple[str, ...]:
    """Names of the templates of a split."""
    return tuple(name for name, one in SPLIT_TEMPLATES.items() if one.split == split)


# -- episodes -------------------------------------------------------------------------------------

_ROWS = (1, 3)
"""Minimum and maximum number of records of each table that are not related to the task."""


@lru_cache(maxsize=1024)
def _assign(task: str, seed: int, agents: int) -> Assignment:
    """Draw the parameters of a task: what twins share, and then the facts in the other apps.

    The assignment is kept, because a study plays one episode with many graphs. Episodes change only
    clones of its device.
    """
    spec, twins = SPLIT_TEMPLATES[task], seed >> 1
    salt = crc32(task.encode(), twins & 0xFFFFFFFF)
    sampler = Sampler(random.Random(salt << 32 | twins), split_of(seed))
    needed = {spec.acting, *spec.sources}
    others = [app for app in SPLIT_APPS if app not in needed]
    needed.update(sampler.rng.sample(others, agents - len(needed)))
    team = [app for app in SPLIT_APPS if app in needed]
    device = Device(tuple(sampler.rng.sample(team, len(team))), PHONE)
    PHONE.apps[spec.acting].fill(device, sampler, *_ROWS)
    text = sampler.pick(spec.goals)
    names = [fact.name(sampler) for fact in spec.facts]
    form = {field.name: field for field in spec.into.form}
    given = {name: form[name].random_value(sampler) for name in spec.given}
    hidden = Sampler(random.Random(salt << 33 | seed), split_of(seed))
    hidden.values = sampler.values
    fields = spec.fields(given, _hide(spec, names, device, hidden))
    device.home = (Screen(spec.acting),)
    device.show(device.home)
    return Assignment(
        budget=2 * (2 + len(fields)) + 3,
        text=text.format_map({**given, **dict(zip(NAMES, names, strict=False))}),
        goal=Goal(records=(Want(table=spec.into.name, fields=fields),)),
        start=device,
        parameters=frozenset(sampler.values),
        salt=salt,
    )


def _hide(spec: SplitTemplate, names: Sequence[str], device: Device, sampler: Sampler) -> list[str]:
    """Fill all apps but the acting one. Returns the values of the facts.

    Every app that holds no fact has a record with the name of one fact and a wrong value of the
    same kind.
    """
    found: dict[int, str] = {}
    for app in _team(device):
        if app == spec.acting:
            continue
        rows: list[tuple[Table, Row]] = []
        for k, fact in enumerate(spec.facts):
            if fact.app == app:
                found[k] = fact.value(sampler)
                known = {fact.table.title: names[k], fact.field: found[k]}
                rows.append((fact.table, _record(fact.table, sampler, known)))
        if not rows and app in _WRONG:
            k = sampler.pick(range(len(names)))
            name, value = names[k], spec.facts[k].value(sampler)
            of, named, field = _WRONG[app]
            table = TABLES[of]
            known = {named: name, field: value} if field else {named: f"{name} {value}"}
            rows.append((table, _record(table, sampler, known)))
        PHONE.apps[app].fill(device, sampler, *_ROWS)
        for table, row in rows:
            device.insert(table.name, row)
            stored = list(device.tables[table.name].items())
            sampler.rng.shuffle(stored)
            device.tables = {**device.tables, table.name: dict(stored)}
    return [found[k] for k in range(len(spec.facts))]


def _record(table: Table, sampler: Sampler, known: Row) -> Row:
    """A record with some known values. A page is bookmarked."""
    marked = {"bookmarked": "on"} if table.name == "page" else {}
    return {**PHONE.apps[table.app].record(sampler, table), **known, **marked}


def _team(device: Device) -> tuple[str, ...]:
    return tuple(app for app in SPLIT_APPS if app in device.installed)


# -- the environment ------------------------------------------------------------------------------


class SplitPhone(PhoneEnvironment):
    """Split facts: the values that a task needs are on the screens of other agents.

    The screen is divided into panes, and :class:`~swarm_ui.agent_view.Pane` shows each agent its
    own pane. The pane of the app in which the task ends comes first, and ``Observation.app`` is its
    title; the other panes list the records of their apps with all values. Success check and splits
    of parameters by seed are those of :class:`~swarm_ui.environments.phone.PhoneEnvironment`.
    """

    tasks = tuple(SPLIT_TEMPLATES)

    def __init__(self, *, agents: int = MOST_AGENTS) -> None:
        """
        Args:
            agents: number of apps of each episode, 4 to 10; the apps that a task does not need are
                drawn at random and hold wrong values.

        Raises:
            ConfigError: the number of agents is out of range.
        """
        super().__init__()
        if not LEAST_AGENTS <= agents <= MOST_AGENTS:
            raise ConfigError(
                f"phone-split: expected {LEAST_AGENTS} to {MOST_AGENTS} agents, got {agents}"
            )
        self._agents = agents
        self.name = f"phone (simulated, split facts, {agents} apps)"

    @classmethod
    def of_split(cls, split: Literal["train", "test"]) -> Sequence[str]:
        return split_tasks("train" if split == "train" else "new_templates")

    def assign(self, task: str, seed: int) -> Assignment:
        """Draw the parameters of a task; equal arguments give the same assignment.

        Raises:
            ConfigError: the seed belongs to no split.
        """
        return _assign(task, seed, self._agents)

    def team(self, task: str, seed: int) -> tuple[str, ...]:
        """The apps of an episode, which are the names of its panes."""
        return _team(self.assign(task, seed).start)

    def spec(self, task: str) -> SplitTemplate:
        """The template: which app acts, and which facts of other apps it needs."""
        return SPLIT_TEMPLATES[task]

    def _operate(self, device: Device, seen: View, action: Action) -> str:
        acting = device.home[0].app
        if action.index is not None and action.index >= len(seen.elements):
            return f"only {acting} can be operated"
        if action.action_type == "open_app":
            return f"only {acting} is open"
        return super()._operate(device, seen, action)

    def screen(self) -> Observation:
        screen, device = super().screen(), self.state.device
        acting = device.home[0].app
        elements = [msgspec.structs.replace(element, pane=acting) for element in screen.elements]
        for app in _team(device):
            if app != acting:
                elements.extend(_pane(device, app, len(elements)))
        return msgspec.structs.replace(screen, elements=tuple(elements))


def _pane(device: Device, name: str, first: int) -> Iterator[Element]:
    """The pane of an app that an agent may read but not operate: its name, then one element for
    each record or setting as it is now. ``first``: index of the first element."""
    app = PHONE.apps[name]
    lines = [
        (row[table.title], ", ".join([f"{f.name} {row[f.name]}" for f in table.fields[1:]]))
        for table in app.tables
        for row in device.tables[table.name].values()
    ]
    lines += [(key, device.settings[key]) for key in app.settings]
    yield Element(index=first, role="heading", text=name, clickable=False, pane=name)
    for index, (text, value) in enumerate(lines, start=first + 1):
        yield Element(index=index, role="item", text=text, value=value, clickable=False, pane=name)
