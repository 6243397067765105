"""Invented devices: the number of a device determines all of its apps."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from swarm_ui.environments.phone.effects import Go
from swarm_ui.environments.phone.sampling import NOUNS, Sampler
from swarm_ui.environments.phone.state import (
    App,
    Catalogue,
    Field,
    Path,
    Screen,
    Setting,
    Table,
    Widget,
)
from swarm_ui.observation import Role

UNSEEN = 1_000_000
"""Number of the first test device. No training uses devices from this number on."""
BLIND = 2_000_000
"""The number of the first device of the blind set. From here on, devices have words and wordings
of their own."""
BLIND_DEVICES = 2
"""Devices of the blind set; they have 16 apps."""
APPS = 8
"""Number of apps of one device."""
_LINKS: tuple[Role, ...] = ("tab", "item", "button")


WordLists = Mapping[str, Any]
"""The words of which invented apps are made.

Names of ``records`` (plurals end in an added s) and of apps: ``brands`` do not describe the app,
``purposes`` are second words of names that do, such as ``voucher log``; ``syllables`` make words
up. ``fields`` and ``titles`` have the names of fields by kind of value, ``choices`` and
``setting_choices`` their options by name; ``done_switches`` are set by the check boxes of a
checklist. ``sections`` are menus and categories, ``options`` lead to the settings of an app, and
the rest are labels of buttons. None of them is a name, a field or a button of a test app; a test
compares the two.
"""
_Words = tuple[str, ...]
_LISTS: Mapping[str, WordLists] = msgspec.json.decode(
    files(__package__).joinpath("words.json").read_bytes(),
    type=dict[str, dict[str, _Words | dict[str, _Words]]],
)
WORDS = _LISTS["training"]
"""The words of all devices except those of the blind set."""
VALUE_OF: Mapping[str, str] = {
    name: kind for kind, names in WORDS["fields"].items() for name in names
}
"""Name of a field of training -> kind of its values."""


# -- values: as on the phone, the split of the seed decides them, and every kind has thousands ----

_MONTHS = (
    "january", "february", "march", "april", "june", "july", "august", "september", "october",
    "november", "december",
)  # fmt: skip
_CODE_LETTERS = "ABCDEFGHKLMNPRSTUVWXYZ"


def made_up_word(sampler: Sampler) -> str:
    """A word of two or three syllables that means nothing."""
    count = 2 + int(sampler.rng.random() * 2)
    return "".join(sampler.pick(WORDS["syllables"]) for _ in range(count))


def _between(sampler: Sampler, low: int, high: int) -> int:
    return low + int(sampler.rng.random() * (high - low + 1))


def _thing(sampler: Sampler) -> str:
    return sampler.pick(NOUNS) if sampler.rng.random() < 0.6 else made_up_word(sampler)


def _code(sampler: Sampler) -> str:
    letters = sampler.pick(_CODE_LETTERS) + sampler.pick(_CODE_LETTERS)
    return f"{letters}-{_between(sampler, 10, 999)}"


def _date(sampler: Sampler) -> str:
    day, month = _between(sampler, 1, 28), sampler.pick(_MONTHS)
    return f"{day} {month} {_between(sampler, 2001, 2060)}"


def _fresh(make: Callable[[Sampler], str]) -> Callable[[Sampler], str]:
    return lambda sampler: sampler.fresh(lambda: make(sampler))


_VALUES: Mapping[str, Callable[[Sampler], str]] = {
    "phrase": lambda s: s.phrase(3 if s.rng.random() < 0.2 else 2),
    "title": lambda s: s.phrase() if s.rng.random() < 0.6 else s.fresh(lambda: _thing(s)),
    "thing": _fresh(_thing),
    "word": _fresh(made_up_word),
    "chore": Sampler.chore,
    "person": Sampler.full_name,
    "time": Sampler.time,
    "amount": Sampler.amount,
    "count": _fresh(lambda s: str(_between(s, 2, 3000))),
    "phone": Sampler.phone,
    "email": Sampler.email,
    "street": Sampler.street,
    "code": _fresh(_code),
    "date": _fresh(_date),
    "share": _fresh(lambda s: f"{_between(s, 0, 99)}.{_between(s, 0, 99):02d}%"),
    "mass": _fresh(lambda s: f"{_between(s, 1, 900)}.{_between(s, 0, 9)} kg"),
}
"""Kind of value -> draws one."""


# -- apps ------------------------------------------------------------------------------------------


def words_of(number: int) -> WordLists:
    """The words of a device."""
    return _LISTS["blind"] if number >= BLIND else WORDS


@lru_cache(maxsize=1024)
def invent(number: int) -> Catalogue:
    """The apps of the device with this number; equal numbers give equal apps."""
    rng = random.Random(f"invented device {number}")
    taken = {"home", "more", "empty"}
    return Catalogue.of(*(_Inventor(rng, words_of(number), taken).app() for _ in range(APPS)))


class _Inventor:
    """Invents one app."""

    def __init__(self, rng: random.Random, lists: WordLists, taken: set[str]) -> None:
        self.rng, self.lists = rng, lists
        self.taken = taken
        """The words that were drawn before; shared by all apps of a device."""
        self.settings: dict[str, Setting] = {}
        self.links: dict[Screen, list[Widget]] = {}

    def app(self) -> App:
        kind = self.rng.choices(
            ("records", "two tables", "checklist", "search", "settings"), (5, 2.5, 2, 1.5, 2)
        )[0]
        if kind == "settings":
            return self._settings_app()
        rng, lists = self.rng, self.lists
        record = self._word(lists["records"]) if rng.random() < 0.8 else self._made_up()
        self.taken.add(record)
        forms = (f"{record}s", f"my {record}s", f"{record} {rng.choice(lists['purposes'])}", "", "")
        chosen = rng.choice(forms)
        root = Screen(chosen or self._brand())
        trail = (root,) if kind == "search" else self._trail(root, record)
        tables = [self._table(record, trail, checklist=kind == "checklist")]
        if kind == "search":
            search = rng.choice(lists["search"])
            tables = [msgspec.structs.replace(tables[0], search=search)]
        if kind == "two tables":
            other = self._word(lists["records"])
            at = Screen(root.app, "list", other)
            tables.append(self._table(other, (root, at), checklist=rng.random() < 0.25))
            self._link(root, at, rng.choice((f"{other}s", f"all {other}s", other)))
        if rng.random() < 0.35:
            text = rng.choice(lists["options"])
            at = Screen(root.app, "category", text)
            self._link(root, at, text)
            self._add_settings((root, at), rng.randint(1, 4))
        return self._finished(root, *tables, named=bool(chosen))

    def _settings_app(self) -> App:
        """An app of switches and choices, in categories."""
        rng, sections = self.rng, self.lists["sections"]
        root = Screen(self._word(self.lists["options"]) if rng.random() < 0.4 else self._brand())
        if rng.random() < 0.3:
            self._add_settings((root,), rng.randint(3, 6))
            return self._finished(root)
        for category in rng.sample(sections, rng.randint(2, 4)):
            path: Path = (root, Screen(root.app, "category", category))
            self._link(root, path[-1], category, "item")
            if rng.random() < 0.2:
                deeper = rng.choice([word for word in sections if word != category])
                path = (*path, Screen(root.app, "category", f"{category} {deeper}"))
                self._link(path[-2], path[-1], deeper, "item")
            self._add_settings(path, rng.randint(2, 4))
        return self._finished(root)

    def _finished(self, root: Screen, *tables: Table, named: bool = False) -> App:
        return App(
            name=root.app, named=named, tables=tables, settings=self.settings, links=self.links
        )

    def _word(self, pool: Sequence[str]) -> str:
        """A word that was not drawn before."""
        left = [word for word in pool if word not in self.taken]
        word = self.rng.choice(left or [self._made_up()])
        self.taken.add(word)
        return word

    def _made_up(self) -> str:
        while True:
            count = self.rng.choice((2, 2, 3))
            word = "".join(self.rng.choice(self.lists["syllables"]) for _ in range(count))
            if word not in self.taken:
                return word

    def _brand(self) -> str:
        """A name that does not say what an app is for."""
        chosen = self._word(self.lists["brands"]) if self.rng.random() < 0.5 else self._made_up()
        self.taken.add(chosen)
        return chosen

    def _link(self, here: Screen, there: Screen, text: str, role: Role | None = None) -> None:
        """Add a widget that leads from one screen to another."""
        shown = self.rng.choice(_LINKS) if role is None else role
        self.links.setdefault(here, []).append(Widget(shown, text, effect=Go(there)))

    def _trail(self, root: Screen, record: str) -> Path:
        """Screens to the list of records, linked to each other."""
        rng = self.rng
        depth = rng.choices((1, 2, 3), (6, 3, 1))[0]
        path: Path = (root,)
        sections = rng.sample(self.lists["sections"], 4)
        if depth == 3:
            path = (*path, Screen(root.app, "category", sections[0]))
            self._link(root, path[-1], sections[0])
            others = sections[2 : 2 + rng.randint(0, 2)]
            for other in others:  # these lead to empty screens
                self._link(root, Screen(root.app, "category", other), other, "item")
        if depth > 1:
            at = Screen(root.app, "list", record)
            text = rng.choice((f"{record}s", f"all {record}s", f"my {record}s"))
            self._link(path[-1], at, text)
            path = (*path, at)
        return path

    def _add_settings(self, path: Path, count: int) -> None:
        """Switches and choices on the last screen of ``path``."""
        choices = self.lists["setting_choices"]
        for _ in range(count):
            left = [key for key in choices if key not in self.taken]
            if left and self.rng.random() < 0.25:
                key = self._word(left)
                at = Screen(path[0].app, "choice", key)
                self.settings[key] = Setting((*path, at), choices[key])
            else:
                self.settings[self._word(self.lists["setting_switches"])] = Setting(path)

    def _table(self, record: str, trail: Path, *, checklist: bool) -> Table:
        """A kind of record with random fields and buttons."""
        rng, lists = self.rng, self.lists
        name = _Inventor(rng, lists, set())._word  # the fields of a table have different names
        kind = rng.choice(tuple(lists["titles"]))
        fields = [Field(name(lists["titles"][kind]), sample=_VALUES[kind])]
        for kind in rng.sample(tuple(lists["fields"]), rng.choice((1, 2, 2, 3)) - int(checklist)):
            fields.append(Field(name(lists["fields"][kind]), sample=_VALUES[kind]))
        if not checklist and rng.random() < 0.5:
            chosen = name(tuple(lists["choices"]))
            fields.append(Field(chosen, "choice", lists["choices"][chosen]))
        if checklist:
            fields.append(Field(name(lists["done_switches"]), "switch", default="off"))
        else:
            for _ in range(rng.choice((0, 1, 1, 2))):
                default = rng.choice(("off", "off", "on"))
                fields.append(Field(name(lists["record_switches"]), "switch", default=default))
        return Table(
            name=record,
            app=trail[0].app,
            fields=tuple(fields),
            trail=trail,
            checklist=checklist,
            **self._buttons(record, editable=not checklist and rng.random() < 0.9),
        )

    def _buttons(self, record: str, *, editable: bool) -> dict[str, str]:
        """Random words for the buttons, all different."""
        rng, lists = self.rng, self.lists
        verb = rng.choice(lists["add"])
        found = {
            "add": rng.choice((verb, f"{verb} {record}", f"new {record}", f"{verb} a {record}"))
        }
        for name in ("save", "edit", "delete", "cancel"):
            unused = [word for word in lists[name] if word not in found.values()]
            found[name] = rng.choice(unused)
            if name in ("save", "delete") and rng.random() < 0.15:
                found[name] += f" {record}"
        return found if editable else {**found, "edit": ""}
