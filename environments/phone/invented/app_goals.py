"""Goals about the settings of an invented app, about opening it, and about two apps."""

from __future__ import annotations

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.invented.goal_owner import (
    Make,
    Owner,
    free_fields,
    goal,
    joined,
    record,
)
from swarm_ui.environments.phone.invented.invented_apps import InventedApp
from swarm_ui.environments.phone.invented.random_values import made_up_word
from swarm_ui.environments.phone.invented.wordings import both, listed, phrase
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import (
    AppInFront,
    Change,
    Configure,
    Create,
    Goal,
    Source,
)
from swarm_ui.environments.phone.tasks.task_kinds import random_row


def setting(count: int, owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: toggle one or two switches of the app."""
    chosen = sampler.rng.sample(owner.app.switches, count)
    states = ["off" if device.settings[key] == "on" else "on" for key in chosen]
    app, part = owner.app, owner.part or count > 1
    if count == 1 and owner.wordings == "many" and sampler.rng.random() < 0.4:
        place = _place(app, chosen[0])
    else:
        place = app.name
    texts = [
        phrase(
            "setting", {**owner.slots(switch=key, state=state), "app": place}, sampler.rng,
            wordings=owner.wordings, mention=number == 0, part=part,
        )
        for number, (key, state) in enumerate(zip(chosen, states, strict=True))
    ]  # fmt: skip
    text = texts[0]
    if count == 2:
        text = both(texts[0], texts[1], sampler.rng, wordings=owner.wordings)
    wants = tuple(Configure(key=k, value=v) for k, v in zip(chosen, states, strict=True))
    return goal(text, wants=wants)


def _place(app: InventedApp, key: str) -> str:
    """The words with which a goal names the screen of a setting."""
    path = app.app.settings[key].path
    return app.name if len(path) == 1 else f"{path[-1].of} of {app.name}"


def choice(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: set a choice of the app to another option."""
    key = sampler.pick(owner.app.choices)
    options = owner.app.app.settings[key].choices
    option = sampler.pick([other for other in options if other != device.settings[key]])
    text = owner.text("choice", sampler.rng, switch=key, option=option)
    return goal(text, wants=(Configure(key=key, value=option),))


def no_switch(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal about a switch that does not exist; the text names the screen on which it should
    be."""
    known = sampler.pick(owner.app.switches)
    path = owner.app.app.settings[known].path
    absent = [key for key in owner.app.words.setting_switches if key not in device.settings]
    switch = sampler.pick(absent) if absent else made_up_word(sampler)
    words = {"switch": switch, "state": sampler.pick(("on", "off"))}
    slots = {**owner.slots(**words), "app": _place(owner.app, known)}
    text = phrase("setting", slots, sampler.rng, wordings=owner.wordings, mention=True)
    return goal(text, look=path, infeasible=True)


def open_app(owner: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: open the app."""
    text = owner.text("open", sampler.rng)
    return goal(text, wants=(AppInFront(app=owner.app.name),))


def copy(origin: Owner, into: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: copy a value of a record into a new record of another app."""
    table, other, rng = origin.records, into.records, sampler.rng
    key, row = random_row(table, sampler, device)
    field = sampler.pick([f.name for f in table.form[1:] if f.kind == "text"])
    slot = sampler.pick([f.name for f in other.form[1:] if f.kind == "text"])
    given = {other.title: record(sampler, other)[other.title]}
    words = {
        **_across(origin, into), "title": row[table.title], "field": field, "field2": slot,
        "fields": listed(given, rng, wordings=origin.wordings, free=free_fields(other)),
    }  # fmt: skip
    text = phrase("copy", words, rng, wordings=origin.wordings, mention=False)
    source = Source.of(table, key, row, field)
    want = Create(table=other.name, fields={slot: row[field], **given}, source=source)
    return goal(text, wants=(want,))


def carry(origin: Owner, into: Owner, sampler: Sampler, device: Device) -> Goal:
    """Draw a goal: copy a value of a record into an existing record of another app."""
    table, other, rng = origin.records, into.records, sampler.rng
    key, row = random_row(table, sampler, device)
    key2, row2 = random_row(other, sampler, device)
    field = sampler.pick([f.name for f in table.form[1:] if f.kind == "text"])
    slot = sampler.pick([f.name for f in other.form[1:] if f.kind == "text"])
    words = {
        **_across(origin, into), "title": row[table.title], "field": field, "field2": slot,
        "title2": row2[other.title],
    }  # fmt: skip
    text = phrase("carry", words, rng, wordings=origin.wordings, mention=False)
    source = Source.of(table, key, row, field)
    want = Change(table=other.name, row=key2, fields={slot: row[field]}, source=source)
    return goal(text, wants=(want,))


def _across(origin: Owner, into: Owner) -> dict[str, str]:
    """The words of two apps. The text names an app if its records do not identify it."""
    words = origin.slots()
    words |= {f"{name}2": text for name, text in into.slots().items()}
    words["edit"], words["add_verb"] = words["edit2"], words["add_verb2"]
    words["from_app"] = f" in {origin.app.name}" if origin.mention else ""
    words["in_app2"] = f" in {into.app.name}" if into.mention else ""
    return words


def pair(
    first: tuple[Make, Owner], second: tuple[Make, Owner], sampler: Sampler, device: Device
) -> Goal:
    """Draw one goal that consists of two goals about different things."""
    one = first[0](first[1].half(), sampler, device)
    two = second[0](second[1].half(), sampler, device)
    return joined(one, two, first[1], sampler)
