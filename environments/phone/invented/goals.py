"""Goals on invented devices: the phone's kinds of tasks, in words that fit an app."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from swarm_ui.environments.phone import kinds
from swarm_ui.environments.phone.goal import Change, Delete
from swarm_ui.environments.phone.invented.devices import (
    VALUE_OF,
    InventedApp,
    made_up_word,
)
from swarm_ui.environments.phone.invented.wordings import (
    ClauseSet,
    both,
    listed,
    phrase,
    rest,
    several,
)
from swarm_ui.environments.phone.kinds import KINDS, About, Draw, Drawn, Words, drawn
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import Device, Screen, Table

_FORMS = {"time": "at {}", "date": "on {}", "amount": "for {}", "mass": "weighing {}"}
"""Kind of value -> a phrase with the value that does not name its field."""


class Owner(msgspec.Struct, frozen=True):
    """What a task is about, and the wording of its goal."""

    made: InventedApp
    table: Table | None
    wordings: ClauseSet
    part: bool = False
    """Whether its text is part of a longer one."""

    @property
    def records(self) -> Table:
        """The table of the task's records; only for tasks about a table."""
        assert self.table is not None
        return self.table

    @property
    def mention(self) -> bool:
        """Whether a goal must name the app, because nothing else in the goal identifies it."""
        table = self.table
        return not (self.made.named and table is not None and table is self.made.app.tables[0])

    def about(self, *fields: str, count: int = 1) -> About:
        return About(app=self.made.app, table=self.table, fields=fields, count=count)

    def half(self) -> Owner:
        """A copy for goals that are part of a compound goal."""
        return msgspec.structs.replace(self, part=True)

    def slots(self, words: Words) -> dict[str, str]:
        """The words for the placeholders of a goal text."""
        found = {"app": self.made.name, **words}
        table = self.table
        if table is not None:
            found |= {"record": table.name, "delete": table.delete, "add": table.add}
            found |= {"edit": table.edit or "change", "add_verb": table.add.split()[0]}
        if found.get("add_verb") == "new":
            found["add_verb"] = "add"
        return found

    def text(self, kind: str, rng: random.Random, words: Words, **options: Any) -> str:
        """The text of a goal of this kind; for the options see :func:`.wordings.phrase`."""
        usual = {"wordings": self.wordings, "mention": self.mention, "part": self.part}
        return phrase(kind, self.slots(words), rng, **{**usual, **options})

    def listed(self, fields: Words, rng: random.Random, *, alone: bool = False) -> str:
        """Fields and their values; ``alone``: some values may stand without their names."""
        form = self.records.form
        bare = {f.name: _FORMS[VALUE_OF[f.name]] for f in form if VALUE_OF.get(f.name) in _FORMS}
        bare |= {field.name: "{}" for field in form if field.kind == "choice"}
        free = [field.name for field in form if field.kind == "text"]
        more = bare if alone else {}
        return listed(fields, rng, wordings=self.wordings, free=free, alone=more)


DrawWords = Callable[[Owner, Sampler, Device], Drawn]
"""Draws a goal, with the words that a text needs to state it."""
Say = Callable[[Owner, Words, random.Random], str]
"""The text of a goal, from these words."""


def draw_of(kind: str, owner: Owner) -> Draw:
    """Draws a goal of this kind and its text, which is its only word."""
    if kind == "create2":
        half = draw_of("create", owner.half())
        return joined(half, half, owner.wordings)
    draw, say = _GOALS[kind]

    def make(sampler: Sampler, device: Device) -> Drawn:
        found, rng = draw(owner, sampler, device), sampler.rng
        text = say(owner, found.words, rng) if say else owner.text(kind, rng, found.words)
        return Drawn(goal=found.goal, words={"text": text})

    return make


def joined(first: Draw, second: Draw, wordings: ClauseSet) -> Draw:
    """Two goals as one, with the texts of both."""
    together = kinds.both(first, second)

    def make(sampler: Sampler, device: Device) -> Drawn:
        found = together(sampler, device)
        text = both(found.words["text"], found.words["text2"], sampler.rng, wordings=wordings)
        return Drawn(goal=found.goal, words={"text": text})

    return make


# -- what is drawn otherwise than on the phone ----------------------------------------------------


def _create(full: bool, owner: Owner, sampler: Sampler, device: Device) -> Drawn:
    """Create a record with values for its title, and for all or some of its other fields."""
    about, table = owner.about(), owner.records
    record = about.record(sampler)
    names = [field.name for field in table.form[1:]]
    count = len(names) if full else int(sampler.rng.random() * (min(3, len(names)) + 1))
    chosen = sampler.rng.sample(names, min(count, len(names)))
    return kinds.created(about, record, [table.title, *(n for n in names if n in chosen)])


def _edit_two(owner: Owner, sampler: Sampler, device: Device) -> Drawn:
    """Change two fields of a record."""
    about, table = owner.about(), owner.records
    key, row = about.row(sampler, device)
    fields: dict[str, str] = {}
    while len(fields) < 2:
        field, value = kinds.changed(about, sampler, row)
        fields[field.name] = value
    words = kinds.numbered(field=list(fields), value=list(fields.values()))
    want = Change(table=table.name, row=key, fields=fields)
    return drawn(want, words={**words, "title": row[table.title]})


def _delete_two(owner: Owner, sampler: Sampler, device: Device) -> Drawn:
    table, chosen = owner.records, owner.about(count=2).rows(sampler, device)
    titles = [row[table.title] for row in chosen.values()]
    wants = (Delete(table=table.name, row=key) for key in chosen)
    return drawn(*wants, words=kinds.numbered(title=titles))


def _missing(owner: Owner, sampler: Sampler, device: Device) -> Drawn:
    """A task about a record that does not exist; it is infeasible."""
    table = owner.records
    values = owner.about().record(sampler)
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
    if owner.made.searched:
        look = (*look, Screen(table.app, "missing", words["title"].casefold()))
    return drawn(words=words, look=look, infeasible=True)


def _absent(owner: Owner, sampler: Sampler, device: Device) -> Drawn:
    """A task about a switch that does not exist, on the screen of one that does."""
    app = owner.made.app
    known = sampler.pick(app.switches)
    absent = [key for key in owner.made.words.setting_switches if key not in device.settings]
    switch = sampler.pick(absent) if absent else made_up_word(sampler)
    words = {"switch": switch, "state": sampler.pick(("on", "off")), "known": known}
    return drawn(words=words, look=app.settings[known].path, infeasible=True)


# -- texts ----------------------------------------------------------------------------------------


def _say_create(owner: Owner, words: Words, rng: random.Random) -> str:
    title = owner.records.title
    others = {name: value for name, value in words.items() if name != title}
    fields = owner.listed(words, rng, alone=True)
    more = rest(owner.listed(others, rng, alone=True), rng, wordings=owner.wordings)
    return owner.text("create", rng, {"fields": fields, "title": words[title], "rest": more})


def _say_edit(owner: Owner, words: Words, rng: random.Random) -> str:
    kind = "edit"
    if owner.wordings == "many" and rng.random() < 0.3:
        field = next(f for f in owner.records.fields if f.name == words["field"])
        dated = VALUE_OF.get(field.name) in ("time", "date")
        kind = "classify" if field.kind == "choice" else "reschedule" if dated else "edit"
    return owner.text(kind, rng, words)


def _say_edit_two(owner: Owner, words: Words, rng: random.Random) -> str:
    pairs = {words["field"]: words["value"], words["field2"]: words["value2"]}
    return owner.text("edit2", rng, {**words, "fields": owner.listed(pairs, rng)})


def _say_delete_two(owner: Owner, words: Words, rng: random.Random) -> str:
    titles = several(_titles(words), rng, wordings=owner.wordings)
    return owner.text("delete", rng, {"title": titles}, free=())


def _say_toggle(owner: Owner, words: Words, rng: random.Random) -> str:
    kind, chance = "toggle", rng.random()
    if owner.wordings == "many" and chance < 0.3:
        kind = "mark" if words["state"] == "on" else "unmark"
    elif owner.wordings == "many" and chance < 0.6 and len(owner.records.switches) == 1:
        kind = "toggle_only"
    return owner.text(kind, rng, words)


def _say_check(owner: Owner, words: Words, rng: random.Random) -> str:
    titles = several(_titles(words), rng, wordings=owner.wordings)
    return owner.text("check", rng, {"titles": titles, "switch": words["switch"]})


def _titles(words: Words) -> list[str]:
    return [word for name, word in words.items() if name.startswith("title")]


def _say_missing(owner: Owner, words: Words, rng: random.Random) -> str:
    table, possible = owner.records, ["delete"]
    if table.checklist:
        possible.append("check")
    else:
        possible.append("show")
        if "field" in words:
            possible += ["read"] + ["edit"] * bool(table.edit)
        if table.switches:
            possible.append("toggle")
    chosen = possible[int(rng.random() * len(possible))]
    return owner.text(chosen, rng, {**words, "titles": words["title"]})


def _say_settings(owner: Owner, words: Words, rng: random.Random) -> str:
    """One switch, or two, of which only the first text names the app."""
    app, count = owner.made.app, 1 + ("switch2" in words)
    place = app.name
    if count == 1 and owner.wordings == "many" and rng.random() < 0.4:
        place = _place(owner, words["switch"])
    texts = []
    for number in ("", "2")[:count]:
        told = {"switch": words[f"switch{number}"], "state": words[f"state{number}"], "app": place}
        part = owner.part or count > 1
        texts.append(owner.text("setting", rng, told, mention=not number, part=part))
    return texts[0] if count == 1 else both(texts[0], texts[1], rng, wordings=owner.wordings)


def _say_absent(owner: Owner, words: Words, rng: random.Random) -> str:
    told = {**words, "app": _place(owner, words["known"])}
    return owner.text("setting", rng, told, mention=True)


def _place(owner: Owner, key: str) -> str:
    """The words with which a goal names the screen of a setting."""
    app = owner.made.app
    path = app.settings[key].path
    return app.name if len(path) == 1 else f"{path[-1].of} of {app.name}"


def crossed(kind: str, origin: Owner, into: Owner) -> Draw:
    """Copy a value of a record into a new record, or an existing one, of another app."""

    def make(sampler: Sampler, device: Device) -> Drawn:
        rng, title = sampler.rng, into.records.title
        if kind == "copy":
            found = kinds.copy(origin.about(), into.about(title), sampler, device)
            given = {title: found.words[title]}
            fields = msgspec.structs.replace(into, wordings=origin.wordings).listed(given, rng)
            words = {**found.words, "fields": fields}
        else:
            found = kinds.carry(origin.about(), into.about(), sampler, device)
            words = dict(found.words)
        words |= {"title": words["source"]}
        slots = {**_across(origin, into), **words}
        text = phrase(kind, slots, rng, wordings=origin.wordings, mention=False)
        return Drawn(goal=found.goal, words={"text": text})

    return make


def _across(origin: Owner, into: Owner) -> dict[str, str]:
    """The words of two apps. The text names an app if its records do not identify it."""
    words = origin.slots({})
    words |= {f"{name}2": text for name, text in into.slots({}).items()}
    words["edit"], words["add_verb"] = words["edit2"], words["add_verb2"]
    words["from_app"] = f" in {origin.made.name}" if origin.mention else ""
    words["in_app2"] = f" in {into.made.name}" if into.mention else ""
    return words


def _usual(kind: str, count: int = 1) -> DrawWords:
    """What the phone's tasks of this kind draw."""
    return lambda owner, sampler, device: KINDS[kind].draw(
        owner.about(count=count), sampler, device
    )


_GOALS: Mapping[str, tuple[DrawWords, Say | None]] = {
    "open": (lambda owner, sampler, device: kinds.open_app(owner.made.name), None),
    "create": (partial(_create, False), _say_create),
    "create-full": (partial(_create, True), _say_create),
    "edit": (_usual("edit"), _say_edit),
    "edit2": (_edit_two, _say_edit_two),
    "delete": (_usual("delete"), None),
    "delete2": (_delete_two, _say_delete_two),
    "missing": (_missing, _say_missing),
    "check": (_usual("check"), _say_check),
    "check2": (_usual("check", 2), _say_check),
    "check3": (_usual("check", 3), _say_check),
    "show": (_usual("show"), None),
    "read": (_usual("read"), None),
    "toggle": (_usual("toggle"), _say_toggle),
    "state": (_usual("state"), None),
    "setting": (_usual("setting"), _say_settings),
    "settings": (_usual("setting", 2), _say_settings),
    "absent": (_absent, _say_absent),
    "choice": (_usual("choice"), None),
}
"""Kind of task -> what it draws, and its text if it is not the plain one of the kind."""
