"""Invented devices: the number of a device determines all of its apps."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

import msgspec

from swarm_ui.environments.phone.effects import Go, Search
from swarm_ui.environments.phone.record_screens import (
    listing,
    record_screen,
    search_field,
    setting_choice,
    setting_switch,
)
from swarm_ui.environments.phone.sampling import NOUNS, Sampler
from swarm_ui.environments.phone.state import (
    App,
    Catalogue,
    Device,
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


class WordLists(msgspec.Struct, frozen=True, kw_only=True):
    """The words of which invented apps are made.

    None of them is a name, a field or a button of a test app; a test compares the two.
    """

    records: tuple[str, ...]
    """Names of records; the plural of each ends in an added s."""
    brands: tuple[str, ...]
    """Names of apps that do not describe the app."""
    purposes: tuple[str, ...]
    """Second words of names that describe the app, such as ``voucher log``."""
    syllables: tuple[str, ...]
    """Syllables of which made-up words consist."""
    fields: Mapping[str, tuple[str, ...]]
    """Kind of value -> names of fields with such values."""
    titles: Mapping[str, tuple[str, ...]]
    """Kind of value -> names of the field that lists show."""
    choices: Mapping[str, tuple[str, ...]]
    """Closed choices of records, with their options."""
    record_switches: tuple[str, ...]
    done_switches: tuple[str, ...]
    """Names of the switches that the check boxes of a checklist set."""
    setting_switches: tuple[str, ...]
    setting_choices: Mapping[str, tuple[str, ...]]
    """Choices of an app, with their options."""
    sections: tuple[str, ...]
    """Names of menus and categories."""
    options: tuple[str, ...]
    """Tabs and buttons that lead to the settings of an app."""
    add: tuple[str, ...]
    save: tuple[str, ...]
    edit: tuple[str, ...]
    delete: tuple[str, ...]
    cancel: tuple[str, ...]
    search: tuple[str, ...]


_LISTS = msgspec.json.decode(
    files(__package__).joinpath("words.json").read_bytes(), type=dict[str, WordLists]
)
WORDS = _LISTS["training"]
"""The words of all devices except those of the blind set."""
BLIND_WORDS = _LISTS["blind"]
VALUE_OF: Mapping[str, str] = {name: kind for kind, names in WORDS.fields.items() for name in names}
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
    return "".join(sampler.pick(WORDS.syllables) for _ in range(count))


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


class Layout(msgspec.Struct, kw_only=True):
    """The contents of an app's screens, except forms and records."""

    lists: dict[Screen, Table] = {}
    searches: dict[Screen, Search] = {}
    """Screens that show a search instead of the records themselves."""
    search_button: str = ""
    links: dict[Screen, list[Widget]] = {}
    switches: dict[Screen, list[str]] = {}
    choices: dict[Screen, list[str]] = {}
    options: dict[str, tuple[str, ...]] = {}

    def build(self, device: Device, screen: Screen) -> list[Widget]:
        """The widgets of a screen, in reading order."""
        if screen.kind == "choice":
            return setting_choice(device, screen.of, self.options[screen.of])
        if screen.kind == "missing":
            return [Widget("label", f"nothing found for {screen.of}")]
        table, search = self.lists.get(screen), self.searches.get(screen)
        shown: list[Widget] = []
        if search is not None and table is not None:
            shown = [
                search_field(device, table, f"{table.title} of the {table.name}"),
                Widget("button", self.search_button, effect=search),
                Widget("button", table.add, effect=Go(table.screen("new"))),
            ]
        elif table is not None:
            shown = listing(device, table)
        elif screen.kind not in ("list", "category"):
            return record_screen(device, self._table(screen.of), screen)
        shown.extend(setting_switch(device, key) for key in self.switches.get(screen, ()))
        for key in self.choices.get(screen, ()):
            go = Go(Screen(screen.app, "choice", key))
            shown.append(Widget("item", key, device.settings[key], effect=go))
        return [*shown, *self.links.get(screen, ())] or [Widget("label", "empty")]

    def _table(self, name: str) -> Table:
        return next(table for table in self.lists.values() if table.name == name)


class InventedApp(msgspec.Struct, frozen=True, kw_only=True):
    """An app, and the facts that its tasks need."""

    app: App
    named: bool
    """Whether its name says what it stores, so that a goal need not mention the app."""
    searched: bool = False
    """Whether its records are found by a search."""
    words: WordLists = WORDS
    """The words from which the app was made."""

    @property
    def name(self) -> str:
        return self.app.name


class InventedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """The apps of one device."""

    apps: tuple[InventedApp, ...]
    catalogue: Catalogue


class _Pool:
    """Draws words, each at most once."""

    def __init__(self, rng: random.Random, taken: set[str], words: WordLists) -> None:
        self.rng = rng
        self.words = words
        self.taken = taken
        """The word pool, shared by all apps of a device."""

    def word(self, pool: Sequence[str]) -> str:
        """A word that was not drawn before."""
        left = [word for word in pool if word not in self.taken]
        word = self.rng.choice(left or [self.made_up()])
        self.taken.add(word)
        return word

    def made_up(self) -> str:
        while True:
            count = self.rng.choice((2, 2, 3))
            word = "".join(self.rng.choice(self.words.syllables) for _ in range(count))
            if word not in self.taken:
                return word


@lru_cache(maxsize=1024)
def invent(number: int) -> InventedDevice:
    """The device with this number; equal numbers give equal devices."""
    rng = random.Random(f"invented device {number}")
    lists = BLIND_WORDS if number >= BLIND else WORDS
    pool = _Pool(rng, {"home", "more", "empty"}, lists)
    made = tuple(msgspec.structs.replace(_app(pool), words=lists) for _ in range(APPS))
    catalogue = Catalogue.of(*(one.app for one in made))
    return InventedDevice(apps=made, catalogue=catalogue)


def _app(pool: _Pool) -> InventedApp:
    kind = pool.rng.choices(
        ("records", "two tables", "checklist", "search", "settings"), (5, 2.5, 2, 1.5, 2)
    )[0]
    if kind == "settings":
        return _settings_app(pool)
    rng = pool.rng
    record = pool.word(pool.words.records) if rng.random() < 0.8 else pool.made_up()
    pool.taken.add(record)
    name, named = _app_name(pool, record)
    layout, root = Layout(), Screen(name)
    trail = (root,) if kind == "search" else _trail(pool, layout, root, record)
    first = _table(pool, name, record, trail, checklist=kind == "checklist")
    layout.lists[trail[-1]] = first
    tables = [first]
    if kind == "search":
        layout.searches[root] = Search(name, record, first.title)
        layout.search_button = rng.choice(pool.words.search)
    if kind == "two tables":
        other = pool.word(pool.words.records)
        at = Screen(name, "list", other)
        second = _table(pool, name, other, (*trail[:1], at), checklist=rng.random() < 0.25)
        layout.lists[at] = second
        _link(layout, root, at, rng.choice((f"{other}s", f"all {other}s", other)), rng)
        tables.append(second)
    settings: dict[str, Setting] = {}
    if rng.random() < 0.35:
        text = pool.rng.choice(pool.words.options)
        at = Screen(name, "category", text)
        _link(layout, root, at, text, rng)
        settings = _settings(pool, layout, (root, at), rng.randint(1, 4))
    return _finished(layout, name, named, tuple(tables), settings, kind == "search")


def _settings_app(pool: _Pool) -> InventedApp:
    """An app of switches and choices, in categories."""
    rng = pool.rng
    name = pool.word(pool.words.options) if rng.random() < 0.4 else _brand(pool)
    layout, root = Layout(), Screen(name)
    settings: dict[str, Setting] = {}
    if rng.random() < 0.3:
        settings = _settings(pool, layout, (root,), rng.randint(3, 6))
    else:
        for category in rng.sample(pool.words.sections, rng.randint(2, 4)):
            path: Path = (root, Screen(name, "category", category))
            _link(layout, root, path[-1], category, rng, "item")
            if rng.random() < 0.2:
                deeper = rng.choice([w for w in pool.words.sections if w != category])
                inner = Screen(name, "category", f"{category} {deeper}")
                _link(layout, path[-1], inner, deeper, rng, "item")
                path = (*path, inner)
            settings |= _settings(pool, layout, path, rng.randint(2, 4))
    return _finished(layout, name, False, (), settings, False)


def _finished(
    layout: Layout,
    name: str,
    named: bool,
    tables: tuple[Table, ...],
    settings: Mapping[str, Setting],
    searched: bool,
) -> InventedApp:
    root = Screen(name)
    app = App(
        name=name,
        tables=tables,
        menu=root not in layout.lists or root in layout.searches,
        build=layout.build,
        settings=dict(settings),
    )
    return InventedApp(app=app, named=named, searched=searched)


def _app_name(pool: _Pool, record: str) -> tuple[str, bool]:
    """A name for an app, and whether it contains ``record``."""
    rng = pool.rng
    forms = (f"{record}s", f"my {record}s", f"{record} {rng.choice(pool.words.purposes)}", "", "")
    chosen = rng.choice(forms)
    return (chosen, True) if chosen else (_brand(pool), False)


def _brand(pool: _Pool) -> str:
    """A name that does not say what an app is for."""
    chosen = pool.word(pool.words.brands) if pool.rng.random() < 0.5 else pool.made_up()
    pool.taken.add(chosen)
    return chosen


def _trail(pool: _Pool, layout: Layout, root: Screen, record: str) -> Path:
    """Screens to the list of records, linked to each other."""
    rng = pool.rng
    depth = rng.choices((1, 2, 3), (6, 3, 1))[0]
    path: Path = (root,)
    sections = rng.sample(pool.words.sections, 4)
    if depth == 3:
        path = (*path, Screen(root.app, "category", sections[0]))
        _link(layout, root, path[-1], sections[0], rng)
        others = sections[2 : 2 + rng.randint(0, 2)]
        for other in others:  # these lead to empty screens
            _link(layout, root, Screen(root.app, "category", other), other, rng, "item")
    if depth > 1:
        at = Screen(root.app, "list", record)
        text = rng.choice((f"{record}s", f"all {record}s", f"my {record}s"))
        _link(layout, path[-1], at, text, rng)
        path = (*path, at)
    return path


def _link(
    layout: Layout, here: Screen, there: Screen, text: str, rng: random.Random, role: Role = "app"
) -> None:
    """Add a widget that leads from one screen to another."""
    chosen = rng.choice(_LINKS) if role == "app" else role
    layout.links.setdefault(here, []).append(Widget(chosen, text, effect=Go(there)))


def _settings(pool: _Pool, layout: Layout, path: Path, count: int) -> dict[str, Setting]:
    """Switches and choices on the last screen of ``path``."""
    rng, at = pool.rng, path[-1]
    made: dict[str, Setting] = {}
    for _ in range(count):
        left = [key for key in pool.words.setting_choices if key not in pool.taken]
        if left and rng.random() < 0.25:
            key = pool.word(left)
            layout.options[key] = pool.words.setting_choices[key]
            layout.choices.setdefault(at, []).append(key)
            made[key] = Setting(
                (*path, Screen(at.app, "choice", key)), pool.words.setting_choices[key]
            )
        else:
            key = pool.word(pool.words.setting_switches)
            layout.switches.setdefault(at, []).append(key)
            made[key] = Setting(path)
    return made


def _table(pool: _Pool, app: str, record: str, trail: Path, *, checklist: bool) -> Table:
    """A kind of record with random fields and buttons."""
    rng = pool.rng
    kind = rng.choice(tuple(pool.words.titles))
    names = _Pool(rng, set(), pool.words)
    fields = [Field(names.word(pool.words.titles[kind]), sample=_VALUES[kind])]
    for kind in rng.sample(tuple(pool.words.fields), rng.choice((1, 2, 2, 3)) - int(checklist)):
        fields.append(Field(names.word(pool.words.fields[kind]), sample=_VALUES[kind]))
    if not checklist and rng.random() < 0.5:
        name = names.word(tuple(pool.words.choices))
        fields.append(Field(name, "choice", pool.words.choices[name]))
    if checklist:
        fields.append(Field(names.word(pool.words.done_switches), "switch", default="off"))
    else:
        for _ in range(rng.choice((0, 1, 1, 2))):
            default = rng.choice(("off", "off", "on"))
            fields.append(Field(names.word(pool.words.record_switches), "switch", default=default))
    return Table(
        name=record,
        app=app,
        fields=tuple(fields),
        trail=trail,
        checklist=checklist,
        **_buttons(pool, record, editable=not checklist and rng.random() < 0.9),
    )


def _buttons(pool: _Pool, record: str, *, editable: bool) -> dict[str, str]:
    """Random words for the buttons, all different."""
    rng, lists = pool.rng, pool.words
    verb = rng.choice(lists.add)
    add = rng.choice((verb, f"{verb} {record}", f"new {record}", f"{verb} a {record}"))
    taken = {add}
    found = {"add": add}
    for name, choices in (
        ("save", lists.save), ("edit", lists.edit), ("delete", lists.delete),
        ("cancel", lists.cancel),
    ):  # fmt: skip
        word = rng.choice([word for word in choices if word not in taken])
        if name in ("save", "delete") and rng.random() < 0.15:
            word = f"{word} {record}"
        taken.add(word)
        found[name] = word
    if not editable:
        found["edit"] = ""
    return found
