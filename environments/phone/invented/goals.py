"""Goals on invented devices: the phone's kinds of tasks, in words that fit an app."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from swarm_ui.environments.phone import kinds
from swarm_ui.environments.phone.goal import Goal
from swarm_ui.environments.phone.invented.devices import VALUE_OF, made_up_word
from swarm_ui.environments.phone.invented.wordings import ClauseSet, Voice
from swarm_ui.environments.phone.kinds import KINDS, About, Draw, DrawKind, Drawn
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import Device, Row, Screen

_FORMS = {"time": "at {}", "date": "on {}", "amount": "for {}", "mass": "weighing {}"}
"""Kind of value -> a phrase with the value that does not name its field."""


class _Goal(Voice):
    """A drawn goal that is to be put in words. The methods without arguments give its text."""

    def __init__(
        self, wordings: ClauseSet, rng: random.Random, part: bool, about: About, words: Row
    ) -> None:
        super().__init__(wordings, rng, part=part)
        self.about, self.words = about, words

    def text(self, kind: str, words: Row | None = None, **options: Any) -> str:
        """The plain text of a kind, also with other words; for the options see
        :meth:`Voice.phrase`."""
        slots = _slots(self.about, self.words if words is None else words)
        return self.phrase(kind, slots, **{"mention": _nameless(self.about), **options})

    def fields(self, fields: Row, *, alone: bool = False) -> str:
        """Fields and their values; ``alone``: some values may stand without their names."""
        form, bare = self.about.records.form, {}
        if alone:
            kinds_of = {field.name: VALUE_OF.get(field.name, "") for field in form}
            bare = {name: _FORMS[kind] for name, kind in kinds_of.items() if kind in _FORMS}
            bare |= {field.name: "{}" for field in form if field.kind == "choice"}
        return self.listed(fields, free=[f.name for f in form if f.kind == "text"], alone=bare)

    def titles(self) -> str:
        return self.several([word for key, word in self.words.items() if key.startswith("title")])

    def create(self) -> str:
        others, fields = dict(self.words), self.fields(self.words, alone=True)
        title = others.pop(self.about.records.title)
        rest = self.rest(self.fields(others, alone=True))
        return self.text("create", {"fields": fields, "title": title, "rest": rest})

    def edit(self) -> str:
        kind = "edit"
        if self.varied and self.rng.random() < 0.3:
            field = next(f for f in self.about.records.fields if f.name == self.words["field"])
            dated = VALUE_OF.get(field.name) in ("time", "date")
            kind = "classify" if field.kind == "choice" else "reschedule" if dated else "edit"
        return self.text(kind)

    def edit_two(self) -> str:
        words = self.words
        pairs = {words["field"]: words["value"], words["field2"]: words["value2"]}
        return self.text("edit2", {**words, "fields": self.fields(pairs)})

    def delete_two(self) -> str:
        return self.text("delete", {"title": self.titles()}, free=())

    def toggle(self) -> str:
        kind, chance = "toggle", self.rng.random()
        if self.varied and chance < 0.3:
            kind = "mark" if self.words["state"] == "on" else "unmark"
        elif self.varied and chance < 0.6 and len(self.about.records.switches) == 1:
            kind = "toggle_only"
        return self.text(kind)

    def check(self) -> str:
        return self.text("check", {"titles": self.titles(), "switch": self.words["switch"]})

    def missing(self) -> str:
        table, possible = self.about.records, ["delete", "show"]
        if table.checklist:
            possible = ["delete", "check"]
        if "field" in self.words:
            possible += ["read"] + ["edit"] * bool(table.edit)
        if "state" in self.words:
            possible.append("toggle")
        chosen = possible[int(self.rng.random() * len(possible))]
        return self.text(chosen, {**self.words, "titles": self.words["title"]})

    def setting(self) -> str:
        place = self.about.app.name
        if self.varied and self.rng.random() < 0.4:
            place = self.place(self.words["switch"])
        return self.text("setting", {**self.words, "app": place})

    def settings(self) -> str:
        """Two switches; only the first text names the app."""
        words, self.part = self.words, True
        first, second = (
            self.text("setting", {name: words[name + more] for name in ("switch", "state")},
                      mention=not more)
            for more in ("", "2")
        )  # fmt: skip
        return self.both(first, second)

    def absent(self) -> str:
        told = {**self.words, "app": self.place(self.words["known"])}
        return self.text("setting", told, mention=True)

    def place(self, key: str) -> str:
        """The words with which a goal names the screen of a setting."""
        app = self.about.app
        path = app.settings[key].path
        return app.name if len(path) == 1 else f"{path[-1].of} of {app.name}"


def _slots(about: About, words: Row) -> dict[str, str]:
    """The words for the placeholders of a goal text."""
    found, table = {"app": about.app.name, **words}, about.table
    if table is not None:
        verb = table.add.split()[0]
        found |= {"record": table.name, "delete": table.delete, "add": table.add}
        found |= {"edit": table.edit or "change", "add_verb": "add" if verb == "new" else verb}
    return found


def _nameless(about: About) -> bool:
    """Whether a goal must name the app, because nothing else in the goal identifies it."""
    app, table = about.app, about.table
    return not (app.named and table is not None and table is app.tables[0])


# -- goals ----------------------------------------------------------------------------------------


def draw_of(kind: str, about: About, wordings: ClauseSet, *, part: bool = False) -> Draw:
    """Draws a goal of this kind and its text, which is its only word.

    Args:
        kind: the kind of task.
        about: what it is about.
        wordings: the set of wordings.
        part: the text is part of a longer one.
    """
    if kind == "create2":
        half = partial(draw_of, "create", about)
        return joined(half, half, wordings)
    draw, say = _GOALS.get(kind) or (KINDS[kind].draw, lambda goal: goal.text(kind))

    def make(sampler: Sampler, device: Device) -> Drawn:
        goal, words = draw(about, sampler, device)
        return goal, {"text": say(_Goal(wordings, sampler.rng, part, about, words))}

    return make


def joined(first: Callable[..., Draw], second: Callable[..., Draw], wordings: ClauseSet) -> Draw:
    """Two goals as one, with the texts of both."""
    together = kinds.both(first(wordings, part=True), second(wordings, part=True))

    def make(sampler: Sampler, device: Device) -> Drawn:
        goal, texts = together(sampler, device)
        return goal, {"text": Voice(wordings, sampler.rng).both(*texts.values())}

    return make


def crossed(
    kind: str, origin: About, into: About, wordings: ClauseSet, sampler: Sampler, device: Device
) -> Drawn:
    """Copy a value of a record into a new record, or an existing one, of another app."""
    title, new = into.records.title, kind == "copy"
    into = msgspec.structs.replace(into, fields=(title,) if new else ())
    found, words = kinds.copy(origin, into, sampler, device, existing=not new)
    goal = _Goal(wordings, sampler.rng, False, into, words)
    one, two = _slots(origin, {}), _slots(into, {})
    slots = {**one, **{f"{name}2": text for name, text in two.items()}, **words}
    slots |= {"edit": two["edit"], "add_verb": two["add_verb"], "title": words["source"]}
    # The text names an app if its records do not identify it.
    slots["from_app"] = f" in {one['app']}" if _nameless(origin) else ""
    slots["in_app2"] = f" in {two['app']}" if _nameless(into) else ""
    if new:
        slots["fields"] = goal.fields({title: words[title]})
    return found, {"text": goal.phrase(kind, slots, mention=False)}


def _open(about: About, sampler: Sampler, device: Device) -> Drawn:
    return kinds.open_app(about.app.name)


def _create(full: bool, about: About, sampler: Sampler, device: Device) -> Drawn:
    """Create a record with values for its title, and for all or some of its other fields."""
    record = about.record(sampler)
    title, *names = (field.name for field in about.records.form)
    count = len(names) if full else int(sampler.rng.random() * (min(3, len(names)) + 1))
    chosen = sampler.rng.sample(names, count)
    return kinds.created(about, record, [title, *(name for name in names if name in chosen)])


def _edit_two(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Change two fields of a record."""
    key, row = about.row(sampler, device)
    fields: dict[str, str] = {}
    while len(fields) < 2:
        fields.update([kinds.changed(about, sampler, row)])
    words = kinds.numbered(field=list(fields), value=list(fields.values()))
    return about.goal({key: fields}), {**words, "title": row[about.records.title]}


def _delete_two(about: About, sampler: Sampler, device: Device) -> Drawn:
    return kinds.deleted(about, about.rows(sampler, device))


def _missing(about: About, sampler: Sampler, device: Device) -> Drawn:
    """A task about a record that does not exist; it is infeasible."""
    table, values = about.records, about.record(sampler)
    words = {"title": values[table.title]}
    if table.checklist:
        words["switch"] = table.switches[0].name
    elif len(table.form) > 1:
        field = sampler.pick(table.form[1:]).name
        words |= {"field": field, "value": values[field]}
    if table.switches and not table.checklist:
        words["switch"] = sampler.pick(table.switches).name
        words["state"] = sampler.pick(("on", "off"))
    look = table.trail
    if table.search:
        look = (*look, Screen(table.app, "missing", words["title"].casefold()))
    return Goal(look=look, infeasible=True), words


def _absent(about: About, sampler: Sampler, device: Device) -> Drawn:
    """A task about a switch that does not exist, on the screen of one that does."""
    known = sampler.pick(about.app.switches)
    absent = [key for key in about.fields if key not in device.settings]
    switch = sampler.pick(absent) if absent else made_up_word(sampler)
    words = {"switch": switch, "state": sampler.pick(("on", "off")), "known": known}
    return Goal(look=about.app.settings[known].path, infeasible=True), words


_CHECK = (KINDS["check"].draw, _Goal.check)
_GOALS: Mapping[str, tuple[DrawKind, Callable[[_Goal], str]]] = {
    "open": (_open, lambda goal: goal.text("open")),
    "create": (partial(_create, False), _Goal.create),
    "create-full": (partial(_create, True), _Goal.create),
    "edit": (KINDS["edit"].draw, _Goal.edit),
    "edit2": (_edit_two, _Goal.edit_two),
    "delete2": (_delete_two, _Goal.delete_two),
    "missing": (_missing, _Goal.missing),
    "check": _CHECK,
    "check2": _CHECK,
    "check3": _CHECK,
    "toggle": (KINDS["toggle"].draw, _Goal.toggle),
    "setting": (KINDS["setting"].draw, _Goal.setting),
    "settings": (KINDS["setting"].draw, _Goal.settings),
    "absent": (_absent, _Goal.absent),
}
"""Kind of task -> what it draws and says, where that is not all as on the phone."""
