"""The task templates of the phone's own apps, and their splits for training, validation and tests.

They never change: weights and results rest on them. Tests are held out in three ways:

- **parameters**: the range in which a seed lies decides the split of all random values (names,
  titles, numbers, also those of unrelated records); no value of ``TEST_SEEDS`` occurs in
  ``TRAIN_SEEDS`` (:mod:`swarm_ui.environments.phone.sampling`).
- **templates**: every template is in exactly one of ``train``, ``validation``, ``new_templates``
  and ``new_apps``.
- **apps**: only templates of ``new_apps`` use ``TEST_APPS``; in other episodes these apps are not
  installed.

Each task that cannot be done has a twin with the same texts, in which the thing exists, in a split
of its own. A policy that always declares such a task infeasible solves it but fails its twin, so
the scores of both together show whether an agent searches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

import msgspec

from swarm_ui.environments.phone import kinds
from swarm_ui.environments.phone.apps import CHOICES, MODES, PHONE, SWITCHES, TABLES, TRAIN_APPS
from swarm_ui.environments.phone.goal import Goal, Want
from swarm_ui.environments.phone.kinds import (
    KINDS,
    About,
    Draw,
    Drawn,
    Kind,
    Template,
    TemplateSplit,
    copy,
    create,
    deleted,
    open_app,
)
from swarm_ui.environments.phone.sampling import POOLS, Sampler
from swarm_ui.environments.phone.state import Device, Screen, Table

_NO_SUCH = ("gps", "radar", "infrared", "ethernet", "flashlight", "nfc")
_SWITCHES = {**SWITCHES, "player": MODES}
"""Screen -> the switches on it."""


def _about(table: str, *fields: str, count: int = 1) -> About:
    shown = PHONE.tables[table]
    return About(app=PHONE.apps[shown.app], table=shown, fields=fields, count=count)


def _usual_texts(kind: str, table: Table, field: str) -> tuple[str, ...]:
    """The texts of a kind for any table."""
    name, app = table.name, table.app
    return {
        "edit": (
            f"{table.edit} the {name} {{title}} and set {field} to {{value}}",
            f"change the {field} of {{title}} in {app} to {{value}}",
        ),
        "toggle": (
            f"turn {{state}} {field} for the {name} {{title}}",
            f"switch {field} {{state}} for {{title}} in {app}",
        ),
        "read": (
            f"what is the {field} of the {name} {{title}}",
            f"answer with the {field} of {{title}} in {app}",
        ),
    }.get(kind, (f"{table.delete} the {name} {{title}}", f"{table.delete} {{title}} from {app}"))


def _template(made: Mapping[str, Template], entry: Mapping[str, Any]) -> Template:
    """A template of ``templates.json``; ``made``: those before it.

    ``fields`` are what it is about; for settings, the choice, or the screens with the switches. A
    value is copied ``into`` a new record, whose fields ``given`` are in the text. ``both`` are the
    two templates of which it consists. It is ``far`` if the list must be scrolled.
    """
    kind, count = entry["kind"], entry.get("count", 1)
    fields, texts, rows = tuple(entry.get("fields", ())), entry.get("texts", ()), (3, 5)
    made_of = _KINDS.get(kind)
    draw: Draw
    if "both" in entry:
        one, two = (made[name] for name in entry["both"])
        draw, steps, apps = kinds.both(one.draw, two.draw), 12, (*one.apps, *two.apps)
    elif made_of is None:
        origin = _about(entry["table"], *fields)
        target = _about(entry["into"], *entry.get("given", ()))
        draw, steps = partial(copy, origin, target), 8 + len(target.fields)
        apps = (origin.app.name, target.app.name)
    elif "table" in entry:
        shown, far = PHONE.tables[entry["table"]], entry.get("far", False)
        fields = (shown.switches[0].name,) if kind == "toggle" else fields
        draw = partial(made_of.draw, _about(shown.name, *fields, count=count))
        steps = made_of.steps(len(shown.trail), count if kind == "check" else len(fields)) + far
        apps, rows = (shown.app,), (9, 12) if far else (max(3, count + 1), 5)
        texts = texts or _usual_texts(kind, shown, *fields[:1] or ("",))
    else:
        keys = tuple(key for name in fields for key in _SWITCHES.get(name, (name,)))
        path = PHONE.places[keys[0]].path if keys else (Screen("settings"),)
        about = About(app=PHONE.apps[path[0].app], fields=keys, count=count)
        draw, steps = partial(made_of.draw, about), count * made_of.steps(len(path))
        apps = (path[0].app,) if keys else ()
    return Template(
        name=entry["name"], split=entry["split"], kind=kind, apps=apps, draw=draw, steps=steps,
        texts=tuple(texts), rows=rows,
    )  # fmt: skip


def _open(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Open any app."""
    return open_app(sampler.pick(device.installed))


def _absent(about: About, sampler: Sampler, device: Device) -> Drawn:
    """A task about a switch that does not exist; it is infeasible."""
    words = {"switch": sampler.pick(_NO_SUCH), "state": sampler.pick(("on", "off"))}
    path = about.app.settings[about.fields[0]].path
    return Goal(look=path, infeasible=True), words


def _delete_similar(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Delete a contact; another contact has the same first name."""
    key, row = about.row(sampler, device)
    similar = {**about.record(sampler), "name": sampler.full_name(row["name"].split()[0])}
    device.insert("contact", similar)
    return deleted(about, {key: row})


def _create_two(about: About, sampler: Sampler, device: Device) -> Drawn:
    return kinds.both(partial(create, about), partial(create, about))(sampler, device)


def _reply(about: About, sampler: Sampler, device: Device) -> Drawn:
    """Answer a message."""
    key, row = about.row(sampler, device)
    fields = {"to": row["to"], "text": sampler.phrase()}
    want = Want(table="message", fields=fields, path=TABLES["message"].path("reply", key))
    return Goal(records=(want,)), fields


_KINDS: Mapping[str, Kind] = {
    **KINDS,
    "open": Kind(_open, 0),
    "absent": Kind(_absent, 0),
    "delete-similar": Kind(_delete_similar, 3),
    "create-two": Kind(_create_two, 4, 2),
    "reply": Kind(_reply, 4),
}


def _core() -> dict[str, Template]:
    text = files(__package__).joinpath("templates.json").read_bytes()
    made: dict[str, Template] = {}
    for entry in msgspec.json.decode(text):
        made[entry["name"]] = _template(made, entry)
    return made


CORE: Mapping[str, Template] = _core()
"""The templates of the published study."""


def _twin(base: Template) -> Template:
    """The same task, where the thing exists."""

    def make(sampler: Sampler, device: Device) -> Drawn:
        text = sampler.pick(base.texts)
        if base.kind == "absent":
            goal, words = KINDS["setting"].draw(network, sampler, device)
        else:
            (table,) = PHONE.apps[base.apps[0]].tables
            record = _about(table.name).record(sampler)
            goal, words = deleted(_about(table.name), {device.insert(table.name, record): record})
        return goal, {"text": text.format_map(words)}

    network = About(app=PHONE.apps["settings"], fields=SWITCHES["network"])
    return msgspec.structs.replace(
        base,
        name=base.name.replace("missing", "present"),
        split="twins",
        kind="twin",
        draw=make,
        steps=3 if base.kind == "absent" else 4,
        texts=("{text}",),
    )


TWINS: Mapping[str, Template] = {
    twin.name: twin
    for kind in ("missing", "absent")
    for twin in (_twin(base) for base in CORE.values() if base.kind == kind)
}
"""The tasks that cannot be done once more, where the thing exists."""
TEMPLATES: Mapping[str, Template] = {**CORE, **TWINS}


# -- splits ---------------------------------------------------------------------------------------


def tasks(split: TemplateSplit) -> tuple[str, ...]:
    """Names of the templates of a split."""
    return tuple(name for name, template in TEMPLATES.items() if template.split == split)


_CHROME = (
    "home list new detail edit confirm remove reply category choice cancel more timers on off "
    "saved sent deleted copied is empty ?"
)


def vocabulary() -> list[str]:
    """All fixed words of training screens and goals, lower-case, sorted, each once.

    Words of the test apps and of held-out templates are left out, except where training uses the
    same word. Parameters (names, nouns, numbers) are left out too.
    """
    words: set[str] = set()
    for text in _texts():
        words.update(text.casefold().split())
    return sorted(words)


def _texts() -> Iterator[str]:
    yield _CHROME
    yield from POOLS["distractors"]
    yield from TRAIN_APPS
    for name in TRAIN_APPS:
        for table in PHONE.apps[name].tables:
            yield from (table.name, f"{table.name}s", table.add, table.save)
            yield from (table.edit, table.delete)
            for field in table.fields:
                yield field.name
                yield from field.choices
    for category, keys in SWITCHES.items():
        yield category
        yield from keys
    for key, (_, options) in CHOICES.items():
        yield key
        yield from options
    for template in TEMPLATES.values():
        if template.split == "train":
            for text in template.texts:
                yield re.sub(r"\{\w+\}", " ", text)
