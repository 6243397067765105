"""The tasks of an invented device: the phone's kinds of tasks, in words that fit an app, for every
app and for pairs of apps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any
from zlib import crc32

import msgspec

from swarm_ui.environments.phone import kinds
from swarm_ui.environments.phone.goal import Change, Delete
from swarm_ui.environments.phone.invented.devices import (
    BLIND,
    VALUE_OF,
    invent,
    made_up_word,
    words_of,
)
from swarm_ui.environments.phone.invented.wordings import Voice, Wordings
from swarm_ui.environments.phone.kinds import (
    KINDS,
    About,
    Draw,
    DrawKind,
    Drawn,
    Template,
    Words,
    drawn,
)
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import App, Device, Screen

_USUAL, _LONG = (3, 5), (9, 12)
"""Minimum and maximum number of records, in most lists and in those that must be scrolled."""
_SHOWN = (5, 6, 7, 8)
"""Number of apps on the home screen of an episode."""
_PAIRED = ("create", "edit", "delete", "toggle", "check", "setting", "choice")
"""Kinds that can be half of a compound task."""
_FORMS = {"time": "at {}", "date": "on {}", "amount": "for {}", "mass": "weighing {}"}
"""Kind of value -> a phrase with the value that does not name its field."""


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

    def draw(self, voice: Voice) -> Draw:
        return _draw_of(self.kind.removesuffix("-far"), self.about, voice)


@lru_cache(maxsize=2048)
def templates(number: int, wordings: Wordings) -> Mapping[str, Template]:
    """All tasks of a device by name, such as ``invented-17-create-ledger``.

    A template is a kind of goal in one app, or a pair of goals. If the app has several tables, the
    goal is about one of them. Parameters and wording are drawn for each episode.
    """
    apps, voice = invent(number).apps, Voice("blind" if number >= BLIND else wordings)
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
            others=tuple(apps),
            shown=_SHOWN,
            **options,
        )

    for app in apps.values():
        for one in _tasks_of(app, words_of(number).setting_switches):
            add(one.name, (one.about,), one.draw(voice), one.steps, kind=one.kind, rows=one.rows)
            if one.kind in _PAIRED:
                halves[one.name] = one
    rng = random.Random(f"invented tasks {number}")
    for kind, origin, into in _crossings(apps, rng):
        steps = 9 + len(origin.records.trail) + len(into.records.trail)
        name = f"{kind}-{origin.records.name}-{into.records.name}"
        add(name, (origin, into), partial(_crossed, kind, origin, into, voice), steps, kind=kind)
    for one, two in _pairings(halves, rng):
        if one.about.table is not None and one.about.table is two.about.table:
            continue  # the two goals could be about the same record
        draw = _joined(one.draw(voice.half()), two.draw(voice.half()), voice)
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


# -- goals with their texts -----------------------------------------------------------------------

Say = Callable[[Voice, About, Words, random.Random], str]
"""The text of a goal, from the words that state it."""


def _draw_of(kind: str, about: About, voice: Voice) -> Draw:
    """Draws a goal of this kind and its text, which is its only word."""
    if kind == "create2":
        half = _draw_of("create", about, voice.half())
        return _joined(half, half, voice)
    special, say = _GOALS.get(kind, (None, None))
    draw = special or KINDS[kind.rstrip("23")].draw

    def make(sampler: Sampler, device: Device) -> Drawn:
        found, rng = draw(about, sampler, device), sampler.rng
        text = (say or _say(kind))(voice, about, found.words, rng)
        return Drawn(goal=found.goal, words={"text": text})

    return make


def _joined(first: Draw, second: Draw, voice: Voice) -> Draw:
    """Two goals as one, with the texts of both."""
    together = kinds.both(first, second)

    def make(sampler: Sampler, device: Device) -> Drawn:
        found = together(sampler, device)
        text = voice.both(found.words["text"], found.words["text2"], sampler.rng)
        return Drawn(goal=found.goal, words={"text": text})

    return make


def _crossed(
    kind: str, origin: About, into: About, voice: Voice, sampler: Sampler, device: Device
) -> Drawn:
    """Copy a value of a record into a new record, or an existing one, of another app."""
    rng, title = sampler.rng, into.records.title
    more: dict[str, str] = {}
    if kind == "copy":
        giving = msgspec.structs.replace(into, fields=(title,))
        found = kinds.copy(origin, giving, sampler, device)
        more["fields"] = _listed(voice, into, {title: found.words[title]}, rng)
    else:
        found = kinds.carry(origin, into, sampler, device)
    one, two = _slots(origin, {}), _slots(into, {})
    slots = {**one, **{f"{name}2": text for name, text in two.items()}}
    slots |= {"edit": two["edit"], "add_verb": two["add_verb"]}
    # The text names an app if its records do not identify it.
    slots["from_app"] = f" in {one['app']}" if _nameless(origin) else ""
    slots["in_app2"] = f" in {two['app']}" if _nameless(into) else ""
    slots |= {**found.words, **more, "title": found.words["source"]}
    return Drawn(goal=found.goal, words={"text": voice.phrase(kind, slots, rng, mention=False)})


def _nameless(about: About) -> bool:
    """Whether a goal must name the app, because nothing else in the goal identifies it."""
    app, table = about.app, about.table
    return not (app.named and table is not None and table is app.tables[0])


def _slots(about: About, words: Words) -> dict[str, str]:
    """The words for the placeholders of a goal text."""
    found, table = {"app": about.app.name, **words}, about.table
    if table is not None:
        verb = table.add.split()[0]
        found |= {"record": table.name, "delete": table.delete, "add": table.add}
        found |= {"edit": table.edit or "change", "add_verb": "add" if verb == "new" else verb}
    return found


def _text(
    voice: Voice, kind: str, about: About, words: Words, rng: random.Random, **options: Any
) -> str:
    """The text of a goal of this kind; for the options see :meth:`Voice.phrase`."""
    return voice.phrase(kind, _slots(about, words), rng, **{"mention": _nameless(about), **options})


def _listed(
    voice: Voice, about: About, fields: Words, rng: random.Random, *, alone: bool = False
) -> str:
    """Fields and their values; ``alone``: some values may stand without their names."""
    form, more = about.records.form, {}
    if alone:
        more = {f.name: _FORMS[VALUE_OF[f.name]] for f in form if VALUE_OF.get(f.name) in _FORMS}
        more |= {field.name: "{}" for field in form if field.kind == "choice"}
    free = [field.name for field in form if field.kind == "text"]
    return voice.listed(fields, rng, free=free, alone=more)


def _titles(words: Words) -> list[str]:
    return [word for name, word in words.items() if name.startswith("title")]


# -- what is drawn or said otherwise than on the phone --------------------------------------------


def _say(kind: str) -> Say:
    """The plain text of a kind."""
    return lambda voice, about, words, rng: _text(voice, kind, about, words, rng)


def _create(full: bool, about: About, sampler: Sampler, device: Device) -> Drawn:
    """Create a record with values for its title, and for all or some of its other fields."""
    record = about.record(sampler)
    title, *names = (field.name for field in about.records.form)
    count = len(names) if full else int(sampler.rng.random() * (min(3, len(names)) + 1))
    chosen = sampler.rng.sample(names, count)
    return kinds.created(about, record, [title, *(name for name in names if name in chosen)])


def _say_create(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    title = about.records.title
    others = {name: value for name, value in words.items() if name != title}
    fields = _listed(voice, about, words, rng, alone=True)
    rest = voice.rest(_listed(voice, about, others, rng, alone=True), rng)
    told = {"fields": fields, "title": words[title], "rest": rest}
    return _text(voice, "create", about, told, rng)


def _say_edit(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    kind = "edit"
    if voice.varied and rng.random() < 0.3:
        field = next(f for f in about.records.fields if f.name == words["field"])
        dated = VALUE_OF.get(field.name) in ("time", "date")
        kind = "classify" if field.kind == "choice" else "reschedule" if dated else "edit"
    return _text(voice, kind, about, words, rng)


def _edit_two(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Change two fields of a record."""
    key, row = about.row(sampler, device)
    fields: dict[str, str] = {}
    while len(fields) < 2:
        field, value = kinds.changed(about, sampler, row)
        fields[field.name] = value
    words = kinds.numbered(field=list(fields), value=list(fields.values()))
    want = Change(table=about.records.name, row=key, fields=fields)
    return drawn(want, words={**words, "title": row[about.records.title]})


def _say_edit_two(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    pairs = {words["field"]: words["value"], words["field2"]: words["value2"]}
    told = {**words, "fields": _listed(voice, about, pairs, rng)}
    return _text(voice, "edit2", about, told, rng)


def _delete_two(about: About, sampler: Sampler, device: Device) -> Drawn:
    table, chosen = about.records, about.rows(sampler, device)
    wants = (Delete(table=table.name, row=key) for key in chosen)
    return drawn(*wants, words=kinds.numbered(title=[r[table.title] for r in chosen.values()]))


def _say_delete_two(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    titles = voice.several(_titles(words), rng)
    return _text(voice, "delete", about, {"title": titles}, rng, free=())


def _say_toggle(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    kind, chance = "toggle", rng.random()
    if voice.varied and chance < 0.3:
        kind = "mark" if words["state"] == "on" else "unmark"
    elif voice.varied and chance < 0.6 and len(about.records.switches) == 1:
        kind = "toggle_only"
    return _text(voice, kind, about, words, rng)


def _say_check(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    titles = voice.several(_titles(words), rng)
    return _text(voice, "check", about, {"titles": titles, "switch": words["switch"]}, rng)


def _missing(about: About, sampler: Sampler, device: Device) -> Drawn:
    """A task about a record that does not exist; it is infeasible."""
    table, values = about.records, about.record(sampler)
    words = {"title": values[table.title]}
    if table.checklist:
        words["switch"] = table.switches[0].name
    else:
        if len(table.form) > 1:
            field = sampler.pick(table.form[1:]).name
            words |= {"field": field, "value": values[field]}
        if table.switches:
            words["switch"] = sampler.pick(table.switches).name
            words["state"] = sampler.pick(("on", "off"))
    look = table.trail
    if table.search:
        look = (*look, Screen(table.app, "missing", words["title"].casefold()))
    return drawn(words=words, look=look, infeasible=True)


def _say_missing(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    table, possible = about.records, ["delete"]
    if table.checklist:
        possible.append("check")
    else:
        possible.append("show")
        if "field" in words:
            possible += ["read"] + ["edit"] * bool(table.edit)
        if table.switches:
            possible.append("toggle")
    chosen = possible[int(rng.random() * len(possible))]
    return _text(voice, chosen, about, {**words, "titles": words["title"]}, rng)


def _say_settings(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    """One switch, or two, of which only the first text names the app."""
    place = about.app.name
    if about.count == 1:
        if voice.varied and rng.random() < 0.4:
            place = _place(about.app, words["switch"])
        told = {**words, "app": place}
        return _text(voice, "setting", about, told, rng)
    half = voice.half()
    texts = []
    for number in ("", "2"):
        told = {"switch": words[f"switch{number}"], "state": words[f"state{number}"], "app": place}
        texts.append(_text(half, "setting", about, told, rng, mention=not number))
    return voice.both(texts[0], texts[1], rng)


def _absent(about: About, sampler: Sampler, device: Device) -> Drawn:
    """A task about a switch that does not exist, on the screen of one that does."""
    known = sampler.pick(about.app.switches)
    absent = [key for key in about.fields if key not in device.settings]
    switch = sampler.pick(absent) if absent else made_up_word(sampler)
    words = {"switch": switch, "state": sampler.pick(("on", "off")), "known": known}
    return drawn(words=words, look=about.app.settings[known].path, infeasible=True)


def _say_absent(voice: Voice, about: About, words: Words, rng: random.Random) -> str:
    told = {**words, "app": _place(about.app, words["known"])}
    return _text(voice, "setting", about, told, rng, mention=True)


def _place(app: App, key: str) -> str:
    """The words with which a goal names the screen of a setting."""
    path = app.settings[key].path
    return app.name if len(path) == 1 else f"{path[-1].of} of {app.name}"


def _open(about: About, sampler: Sampler, device: Device) -> Drawn:
    return kinds.open_app(about.app.name)


_GOALS: Mapping[str, tuple[DrawKind | None, Say | None]] = {
    "open": (_open, None),
    "create": (partial(_create, False), _say_create),
    "create-full": (partial(_create, True), _say_create),
    "edit": (None, _say_edit),
    "edit2": (_edit_two, _say_edit_two),
    "delete2": (_delete_two, _say_delete_two),
    "missing": (_missing, _say_missing),
    **dict.fromkeys(("check", "check2", "check3"), (None, _say_check)),
    "toggle": (None, _say_toggle),
    **dict.fromkeys(("setting", "settings"), (KINDS["setting"].draw, _say_settings)),
    "absent": (_absent, _say_absent),
}
"""Kind of task -> what it draws and says, where that is not what the phone's kind draws, or not the
plain text of the kind."""
