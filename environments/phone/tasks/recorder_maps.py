"""Tasks in the test apps of a full device, recorder and maps; training uses neither app."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.phone.apps.files import RECORDING_PATH
from swarm_ui.environments.phone.apps.record_apps import CONTACT
from swarm_ui.environments.phone.apps.search_apps import PLACE, route_path
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import SaveCapture
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.camera_browser import denied
from swarm_ui.environments.phone.tasks.files_gallery import add_file
from swarm_ui.environments.phone.tasks.goal import (
    Change,
    Create,
    Delete,
    Goal,
    ScreenInFront,
    Source,
)
from swarm_ui.environments.phone.tasks.task_kinds import add_record, fact, not_found, with_record
from swarm_ui.environments.phone.tasks.template import extended_apps


def _record(sampler: Sampler, device: Device, **fields: str) -> Goal:
    words = {"name": sampler.title()}
    wanted = {"kind": "recording", "folder": "recordings", **words, **fields}
    tap = SaveCapture("recording")
    want = Create(table="file", fields=wanted, path=RECORDING_PATH, tap=tap, form=words)
    return Goal(words=words, wants=(want,))


def _rename(sampler: Sampler, device: Device) -> Goal:
    key, row = add_file(sampler, device, "recordings")
    new = sampler.title()
    want = Change(table="file", row=key, fields={"name": new}, via="recorder")
    return Goal(words={"name": row["name"], "new": new}, wants=(want,))


_add_place = partial(add_record, PLACE)


def _way(sampler: Sampler, device: Device) -> Goal:
    key, row = _add_place(sampler, device)
    way = sampler.pick(("foot", "car"))
    words = {"place": row["place"], "way": way}
    return Goal(words=words, answer=f"{row[way]} min", look=route_path(key))


def _place_to_contact(sampler: Sampler, device: Device) -> Goal:
    key, row = _add_place(sampler, device)
    name = sampler.full_name()
    source = Source.of(PLACE, key, row, "phone")
    fields = {"name": name, "phone": row["phone"]}
    want = Create(table=CONTACT.name, fields=fields, source=source)
    return Goal(words={"place": row["place"], "name": name}, wants=(want,))


_fact = fact(_add_place, PLACE, "street", "phone", "closes")
_no_place = not_found(PLACE, Sampler.phrase)
_trash = with_record(
    partial(add_file, where="recordings"),
    ("name",),
    lambda key, row: Delete(table="file", row=key, via="recorder"),
)
save_place = with_record(
    partial(_add_place, saved="off"),
    ("place",),
    lambda key, row: Change(table="place", row=key, fields={"saved": "on"}),
)
directions = with_record(
    _add_place, ("place",), lambda key, row: ScreenInFront(path=route_path(key))
)
_RECORD = (
    "record something with the recorder and save it as {name}",
    "make a recording with name {name}",
)
TEMPLATES = (
    extended_apps("recorder-record", _record, 6, "recorder", "form permission").phrased(*_RECORD),
    extended_apps(
        "recorder-denied",
        denied(_record, "recorder microphone"),
        12,
        "recorder",
        "form permission misleading",
    ).phrased(*_RECORD),
    extended_apps(
        "recorder-star", partial(_record, starred="on"), 12, "recorder files", "form across toggle"
    ).phrased(
        "make a recording with name {name} and turn on starred for it in files",
        "record something as {name} , then star it in the recordings folder of files",
    ),
    extended_apps("recorder-trash", _trash, 5, "recorder", "delete").phrased(
        "move the recording {name} to the trash", "in the recorder put {name} in the trash"
    ),
    extended_apps("recorder-rename", _rename, 6, "recorder", "edit").phrased(
        "rename the recording {name} to {new}", "in the recorder change the name of {name} to {new}"
    ),
    extended_apps("maps-save", save_place, 5, "maps", "toggle search").phrased(
        "turn on saved for {place} in maps", "save the place {place} in maps"
    ),
    extended_apps("maps-fact", _fact, 5, "maps", "answer search").phrased(
        "what does maps say under {fact} for {place}",
        "look up {place} in maps and answer with its {fact}",
    ),
    extended_apps("maps-way", _way, 7, "maps", "answer search permission").phrased(
        "how long does it take to {place} by {way}",
        "get directions to {place} in maps and answer with the time by {way}",
    ),
    extended_apps("maps-directions", directions, 6, "maps", "open search permission").phrased(
        "show directions to {place} in maps", "open the way to {place} in maps"
    ),
    extended_apps("maps-missing", _no_place, 4, "maps", "infeasible search").phrased(
        "turn on saved for {place} in maps", "show directions to {place} in maps"
    ),
    extended_apps(
        "maps-to-contact", _place_to_contact, 12, "maps contacts", "across form search"
    ).phrased(
        "add a contact with name {name} and the phone that maps has for {place}",
        "look {place} up in maps and save its phone in contacts for {name}",
    ),
)
