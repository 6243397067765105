"""Simulated phones whose apps are invented, and their tasks, of one app or of two."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Literal, NamedTuple
from zlib import crc32

from msgspec.structs import replace

from swarm_ui.environments.base import TEST_SEEDS, TRAIN_SEEDS
from swarm_ui.environments.phone.environment import PhoneEnvironment
from swarm_ui.environments.phone.invented.devices import (
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    invent,
    words_of,
)
from swarm_ui.environments.phone.invented.goals import crossed, draw_of, joined
from swarm_ui.environments.phone.invented.wordings import ClauseSet, Wordings
from swarm_ui.environments.phone.kinds import KINDS, About, Assignment, Draw, Template, draw
from swarm_ui.environments.phone.state import App
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.errors import ConfigError

_SIMPLE = (
    "open", "create", "delete", "missing", "check", "show", "edit", "read", "toggle", "state",
    "setting", "absent", "choice",
)  # fmt: skip
"""Kinds of tasks with one goal in one app, as on the phone."""
_PAIRED = ("create", "edit", "delete", "toggle", "check", "setting", "choice")
"""Kinds that can be half of a compound task."""


class _Single(NamedTuple):
    """A task of one app, without the device and the wordings."""

    kind: str
    about: About
    steps: int
    """Most steps of the solver."""
    rows: tuple[int, int] = (3, 5)
    """Minimum and maximum number of records of its lists; more than 8 must be scrolled."""

    @property
    def name(self) -> str:
        table, app = self.about.table, self.about.app
        return f"{self.kind}-{(table or app).name.replace(' ', '-')}"

    def draw(self, wordings: ClauseSet, *, part: bool = False) -> Draw:
        """``part``: for a half of a compound task."""
        return draw_of(self.kind.removesuffix("-far"), self.about, wordings, part=part)


@lru_cache(maxsize=2048)
def templates(number: int, wordings: Wordings) -> Mapping[str, Template]:
    """All tasks of a device by name, such as ``invented-17-create-ledger``.

    A template is a kind of goal in one app, or a pair of goals. If the app has several tables, the
    goal is about one of them. Parameters and wording are drawn for each episode.
    """
    device, rng = invent(number), random.Random(f"invented tasks {number}")
    clauses: ClauseSet = "blind" if number >= BLIND else wordings
    found: dict[str, Template] = {}

    def add(
        kind: str, name: str, draw: Draw, apps: Sequence[App], steps: int,
        rows: tuple[int, int] = (3, 5),
    ) -> None:  # fmt: skip
        full = f"invented-{number}-{name}"
        found[full] = Template(
            name=full,
            split="invented",
            kind=kind,
            apps=tuple(dict.fromkeys(app.name for app in apps)),
            draw=draw,
            steps=steps,
            texts=("{text}",),
            rows=rows,
            others=tuple(device.apps),
            shown=(5, 6, 7, 8),
            catalogue=device,
        )

    switches = words_of(number)["setting_switches"]
    singles = [one for app in device.apps.values() for one in _tasks_of(app, switches)]
    for one in singles:
        add(one.kind, one.name, one.draw(clauses), (one.about.app,), one.steps, one.rows)
    for kind, origin, into in _crossings(device.apps, rng):
        name = f"{kind}-{origin.records.name}-{into.records.name}"
        steps = 9 + len(origin.records.trail) + len(into.records.trail)
        copies = partial(crossed, kind, origin, into, clauses)
        add(kind, name, copies, (origin.app, into.app), steps)
    for one, two in _pairs([one for one in singles if one.kind in _PAIRED], rng):
        together, apps = joined(one.draw, two.draw, clauses), (one.about.app, two.about.app)
        add("both", f"both-{one.name}-{two.name}", together, apps, one.steps + two.steps + 1)
    return found


def _tasks_of(app: App, possible_switches: tuple[str, ...]) -> Iterator[_Single]:
    """The tasks of one app."""
    plain = About(app=app)
    yield _Single("open", plain, 1)
    for table in app.tables:
        yield from _record_tasks(About(app=app, table=table))
    deepest = max((len(place.path) for place in app.settings.values()), default=0)
    if app.switches:
        yield _Single("setting", plain, KINDS["setting"].steps(deepest))
        yield _Single("absent", About(app=app, fields=possible_switches), deepest)
        if len(app.switches) > 2:
            yield _Single("settings", About(app=app, count=2), 3 * deepest)
    if app.choices:
        yield _Single("choice", plain, KINDS["choice"].steps(deepest))


def _record_tasks(about: About) -> Iterator[_Single]:
    table = about.records
    way, form = len(table.trail) + (2 if table.search else 0), len(table.form)

    def task(name: str, several: int = 0, more: int = 0, rows: tuple[int, int] = (3, 5)) -> _Single:
        kind = KINDS[name.rstrip("23").removesuffix("-full")]
        count = int(name[-1]) if name[-1].isdigit() else 1
        return _Single(name, replace(about, count=count), kind.steps(way, several) + more, rows)

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
    far = ["delete"]
    if table.edit:
        yield task("edit")
        far.append("edit")
        if form > 2:
            yield task("edit2", 0, 1)
    if form > 1:
        yield task("read")
        far.append("read")
    if table.switches:
        yield from (task("toggle"), task("state"))
        far.append("toggle")
    if not table.search:
        one = task(far[crc32(f"{table.name} {form}".encode()) % len(far)], 0, 1, (9, 12))
        yield one._replace(kind=f"{one.kind}-far")


def _crossings(
    apps: Mapping[str, App], rng: random.Random
) -> Iterator[tuple[Literal["copy", "carry"], About, About]]:
    """Values that are copied from one app to another: into a new record, or an existing one."""
    abouts = [
        About(app=app, table=app.tables[0])
        for app in apps.values()
        if app.tables and any(field.kind == "text" for field in app.tables[0].form[1:])
    ]
    for origin in abouts:
        if origin.records.checklist:
            continue
        others = [about for about in abouts if about.app is not origin.app]
        if others:
            yield "copy", origin, rng.choice(others)
        if editable := [about for about in others if about.records.edit]:
            yield "carry", origin, rng.choice(editable)


def _pairs(halves: Sequence[_Single], rng: random.Random) -> Iterator[tuple[_Single, _Single]]:
    """Compound tasks: about one pair for every four tasks, but not of two goals that could be about
    the same record."""
    for one in halves:
        if rng.random() < 0.6:
            two, table = rng.choice(halves), one.about.table
            if one is not two and (table is None or table is not two.about.table):
                yield one, two


class InventedPhone(PhoneEnvironment):
    """Phones whose apps, words, screens and tasks are made up; for training.

    The number of a device determines all of its apps, so there is no limit to the number of
    devices. They contain no name, field or button of the phone's test apps. Observations, actions,
    success check, reference solver and the splits of parameters by seed are those of
    :class:`~swarm_ui.environments.phone.PhoneEnvironment`.
    """

    def __init__(
        self,
        *,
        devices: int = 32,
        first: int = 0,
        wordings: Wordings = "many",
        screenshots: bool = False,
    ) -> None:
        """
        Args:
            devices: number of devices in ``tasks``.
            first: number of the first device. Devices from number :data:`UNSEEN` on are for tests:
                training seeds are refused; those from :data:`BLIND` on are played with test seeds
                only.
            wordings: ``"few"``: two plain wordings for each kind of task; ``"many"``: thousands.
                Devices from number :data:`BLIND` on have plain wordings of their own.
            screenshots: see :class:`~swarm_ui.environments.phone.PhoneEnvironment`.

        Raises:
            ConfigError: a number is out of range, or the set of wordings does not exist.
        """
        super().__init__(screenshots=screenshots)
        if devices < 1 or first < 0:
            raise ConfigError(
                f"invented: expected devices >= 1 and first >= 0, got {devices} and {first}"
            )
        if wordings not in ("few", "many"):
            raise ConfigError(f"invented: no wordings {wordings!r}; expected 'few' or 'many'")
        self._first, self._devices, self._wordings = first, devices, wordings
        self.name = f"invented phone (simulated{', few wordings' * (wordings == 'few')})"

    @property
    def tasks(self) -> Sequence[str]:  # type: ignore[override]
        return task_names(self._first, self._devices, self._wordings)

    @classmethod
    def of_split(cls, split: Literal["train", "test"]) -> Sequence[str]:
        """The tasks of the first 32 devices for training, or of the first for tests."""
        first = 0 if split == "train" else UNSEEN
        return task_names(first, 32, "many")

    def knows(self, task: str) -> bool:
        """Whether a task exists, on one of these devices or on another, or on the phone itself."""
        return task in TEMPLATES or _found(task, self._wordings)[1] is not None

    def assign(self, task: str, seed: int) -> Assignment:
        """Draw the parameters of a task. It may belong to any device, or be the phone's own.

        Equal arguments give equal assignments.

        Raises:
            ConfigError: the task does not exist, the seed belongs to no split, or the device is
                held out from the split of the seed.
        """
        if task in TEMPLATES:
            return super().assign(task, seed)
        number, template = _found(task, self._wordings)
        held_out = number >= UNSEEN and seed in TRAIN_SEEDS
        if held_out or (number >= BLIND and seed not in TEST_SEEDS):
            raise ConfigError(
                f"invented: device {number} of task {task!r} is held out for tests, got seed {seed}"
                f"; train on devices below {UNSEEN}, or play this one with a seed from "
                f"{TEST_SEEDS.start} to {TEST_SEEDS.stop - 1}"
            )
        if template is None:
            raise ConfigError(f"invented: no task {task!r}; expected one such as {self.tasks[0]!r}")
        return draw(template, seed)


def blind_tasks() -> tuple[str, ...]:
    """The tasks of the blind set."""
    return task_names(BLIND, BLIND_DEVICES, "few")


@lru_cache(maxsize=64)
def task_names(first: int, devices: int, wordings: Wordings) -> tuple[str, ...]:
    """The names of all tasks of these devices."""
    return tuple(
        name for number in range(first, first + devices) for name in templates(number, wordings)
    )


def simple_tasks(first: int, count: int, wordings: Wordings = "few") -> tuple[str, ...]:
    """The tasks of ``count`` devices from number ``first`` on with one goal in one app."""
    return tuple(filter(is_simple, task_names(first, count, wordings)))


def is_simple(task: str) -> bool:
    """Whether a task of an invented device has one goal in one app, as on the phone."""
    return task.split("-")[2] in _SIMPLE


def _found(task: str, wordings: Wordings) -> tuple[int, Template | None]:
    """The number of the device in the name of a task, or -1, and the task if it exists."""
    parts = task.split("-")
    if len(parts) < 3 or parts[0] != "invented" or not parts[1].isdecimal():
        return -1, None
    return int(parts[1]), templates(int(parts[1]), wordings).get(task)
