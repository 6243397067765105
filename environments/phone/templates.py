"""The task templates of the phone's own apps: those of ``templates.json``, and their twins.

They never change: weights and results rest on them. Each task that cannot be done has a twin with
the same texts, in which the thing exists. A policy that always declares such a task infeasible
solves it but fails its twin, so the scores of both together show whether an agent searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.resources import files

import msgspec

from swarm_ui.environments.phone.apps import (
    MODES,
    PHONE,
    SWITCHES,
    category_path,
    reply_path,
)
from swarm_ui.environments.phone.goal import Create
from swarm_ui.environments.phone.kinds import (
    KINDS,
    About,
    Draw,
    Drawn,
    Template,
    TemplateSplit,
    both,
    copy,
    create,
    deleted,
    drawn,
    open_app,
)
from swarm_ui.environments.phone.sampling import Sampler
from swarm_ui.environments.phone.state import Device, Table

_NO_SUCH = ("gps", "radar", "infrared", "ethernet", "flashlight", "nfc")
_SWITCHES = {**SWITCHES, "player": MODES}
"""Screen -> the switches on it."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A template in the file."""

    name: str
    split: TemplateSplit
    kind: str
    table: str = ""
    fields: tuple[str, ...] = ()
    """Fields that it is about; for settings, the choice, or the screens with the switches."""
    into: str = ""
    """The table of the new record, for a value that is copied."""
    given: tuple[str, ...] = ()
    """Fields of the new record that the text gives."""
    count: int = 1
    far: bool = False
    """The list must be scrolled."""
    texts: tuple[str, ...] = ()
    """Goal texts; none: those of the kind."""


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


def _of_kind(entry: _Entry) -> Template:
    """A template of one of the common kinds."""
    kind, texts, rows = KINDS[entry.kind], entry.texts, (3, 5)
    if entry.table:
        table = PHONE.tables[entry.table]
        fields = entry.fields
        if entry.kind == "toggle":
            fields = (table.switches[0].name,)
        about = _about(entry.table, *fields, count=entry.count)
        several = entry.count if entry.kind == "check" else len(fields)
        steps = kind.steps(len(table.trail), several) + entry.far
        texts = texts or _usual_texts(entry.kind, table, *fields[:1] or ("",))
        rows = (9, 12) if entry.far else (max(3, entry.count + 1), 5)
    else:
        keys = tuple(key for name in entry.fields for key in _SWITCHES.get(name, (name,)))
        path = PHONE.places[keys[0]].path
        about = About(app=PHONE.apps[path[0].app], fields=keys, count=entry.count)
        steps = entry.count * kind.steps(len(path))
    return Template(
        name=entry.name,
        split=entry.split,
        kind=entry.kind,
        apps=(about.app.name,),
        draw=partial(kind.draw, about),
        steps=steps,
        texts=texts,
        rows=rows,
    )


def _special(entry: _Entry, made: Mapping[str, Template]) -> Template:
    """A template of another kind; ``made``: those before it."""
    apps: tuple[str, ...]
    if entry.kind == "copy":
        origin, into = _about(entry.table, *entry.fields), _about(entry.into, *entry.given)
        make: Draw = partial(copy, origin, into)
        steps, apps = 8 + len(entry.given), (origin.app.name, into.app.name)
    elif entry.kind == "copy-and-check":
        one, two = made["phone-to-message"], made["tasks-check"]
        make, steps, apps = both(one.draw, two.draw), 12, (*one.apps, *two.apps)
    else:
        make, steps, apps = _OTHERS[entry.kind]
    return Template(
        name=entry.name,
        split=entry.split,
        kind=entry.kind,
        apps=apps,
        draw=make,
        steps=steps,
        texts=entry.texts,
    )


def _open(sampler: Sampler, device: Device) -> Drawn:
    return open_app(sampler.pick(device.installed))


def _absent(sampler: Sampler, device: Device) -> Drawn:
    words = {"switch": sampler.pick(_NO_SUCH), "state": sampler.pick(("on", "off"))}
    return drawn(words=words, look=category_path("network"), infeasible=True)


def _delete_similar(sampler: Sampler, device: Device) -> Drawn:
    """Delete a contact; another contact has the same first name."""
    about = _about("contact")
    key, row = about.row(sampler, device)
    similar = {**about.record(sampler), "name": sampler.full_name(row["name"].split()[0])}
    device.insert("contact", similar)
    return deleted(about, key, row)


def _reply(sampler: Sampler, device: Device) -> Drawn:
    key, row = _about("message").row(sampler, device)
    fields = {"to": row["to"], "text": sampler.phrase()}
    return drawn(Create(table="message", fields=fields, path=reply_path(key)), words=fields)


_SEND = partial(create, _about("message", "to", "text"))
_OTHERS: Mapping[str, tuple[Draw, int, tuple[str, ...]]] = {
    "open": (_open, 1, ()),
    "absent": (_absent, 2, ("settings",)),
    "delete-similar": (_delete_similar, 4, ("contacts",)),
    "create-two": (both(_SEND, _SEND), 9, ("messages",)),
    "reply": (_reply, 5, ("messages",)),
}
"""Kind -> the goal, the solver's actions, and the apps of a task that occurs once."""


def _core() -> dict[str, Template]:
    text = files(__package__).joinpath("templates.json").read_bytes()
    made: dict[str, Template] = {}
    for entry in msgspec.json.decode(text, type=tuple[_Entry, ...]):
        made[entry.name] = _of_kind(entry) if entry.kind in KINDS else _special(entry, made)
    return made


CORE: Mapping[str, Template] = _core()
"""The templates of the published study."""


def _twin(base: Template) -> Template:
    """The same task, where the thing exists."""

    def make(sampler: Sampler, device: Device) -> Drawn:
        text = sampler.pick(base.texts)
        if base.kind == "absent":
            found = KINDS["setting"].draw(network, sampler, device)
        else:
            (table,) = PHONE.apps[base.apps[0]].tables
            record = _about(table.name).record(sampler)
            found = deleted(_about(table.name), device.insert(table.name, record), record)
        words = {**found.words, "text": text.format_map(found.words)}
        return Drawn(goal=found.goal, words=words)

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
