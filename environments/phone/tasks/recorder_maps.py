"""Tasks in the test apps of a whole phone, recorder and maps: nothing of them is in training."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.contacts import CONTACT
from swarm_ui.environments.phone.apps.maps import PLACE, route_path
from swarm_ui.environments.phone.apps.maps import ROOT as MAPS
from swarm_ui.environments.phone.apps.recorder import RECORDING_PATH
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_effects import SaveCapture, system_of
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.files_gallery import add_file
from swarm_ui.environments.phone.tasks.goal import (
    Change,
    Create,
    Delete,
    Goal,
    ScreenInFront,
    Source,
)
from swarm_ui.environments.phone.tasks.task_kinds import sample
from swarm_ui.environments.phone.tasks.template import Make, Template


def _record(*, denied: bool = False, starred: bool = False) -> Make:
    def make(sampler: Sampler, device: Device) -> Goal:
        if denied:
            device.system = system_of(device).granted("recorder microphone", "deny")
        name = sampler.title()
        fields = {"kind": "recording", "name": name}
        if starred:
            fields["starred"] = "on"
        want = Create(
            table="file",
            fields=fields,
            path=RECORDING_PATH,
            tap=SaveCapture("recording"),
            form={"name": name},
        )
        return Goal(words={"name": name}, wants=(want,))

    return make


def _trash(sampler: Sampler, device: Device) -> Goal:
    key, row = add_file(sampler, device, "recordings")
    want = Delete(table="file", row=key, via="recorder")
    return Goal(words={"name": row["name"]}, wants=(want,))


def _rename(sampler: Sampler, device: Device) -> Goal:
    key, row = add_file(sampler, device, "recordings")
    new = sampler.title()
    want = Change(table="file", row=key, fields={"name": new}, via="recorder")
    return Goal(words={"name": row["name"], "new": new}, wants=(want,))


def _a_place(sampler: Sampler, device: Device, **values: str) -> tuple[int, dict[str, str]]:
    row = {**sample(sampler, PLACE), **values}
    return device.insert("place", row), row


def _save(sampler: Sampler, device: Device) -> Goal:
    key, row = _a_place(sampler, device, saved="off")
    want = Change(table="place", row=key, fields={"saved": "on"})
    return Goal(words={"place": row["place"]}, wants=(want,))


def _fact(sampler: Sampler, device: Device) -> Goal:
    key, row = _a_place(sampler, device)
    fact = sampler.pick(("street", "phone", "closes"))
    words = {"place": row["place"], "fact": fact}
    return Goal(words=words, answer=row[fact], look=PLACE.path("detail", key))


def _way(sampler: Sampler, device: Device) -> Goal:
    key, row = _a_place(sampler, device)
    way = sampler.pick(("foot", "car"))
    words = {"place": row["place"], "way": way}
    return Goal(words=words, answer=f"{row[way]} min", look=route_path(key))


def _directions(sampler: Sampler, device: Device) -> Goal:
    key, row = _a_place(sampler, device)
    return Goal(words={"place": row["place"]}, wants=(ScreenInFront(path=route_path(key)),))


def _no_place(sampler: Sampler, device: Device) -> Goal:
    words = {"place": sampler.phrase(2)}
    look = (MAPS, Screen("maps", "missing", words["place"]))
    return Goal(words=words, look=look, infeasible=True)


def _place_to_contact(sampler: Sampler, device: Device) -> Goal:
    key, row = _a_place(sampler, device)
    name = sampler.full_name()
    source = Source(table="place", row=key, field="phone", value=row["phone"])
    fields = {"name": name, "phone": row["phone"]}
    want = Create(table=CONTACT.name, fields=fields, source=source)
    return Goal(words={"place": row["place"], "name": name}, wants=(want,))


_RECORDER, _MAPS = ("recorder",), ("maps",)
TEMPLATES = (
    Template(
        name="recorder-record",
        apps=_RECORDER,
        split="extended_apps",
        steps=6,
        goals=(
            "record something with the recorder and save it as {name}",
            "make a recording with name {name}",
        ),
        make=_record(),
        tags=("form", "permission"),
    ),
    Template(
        name="recorder-denied",
        apps=_RECORDER,
        split="extended_apps",
        steps=12,
        goals=(
            "record something with the recorder and save it as {name}",
            "make a recording with name {name}",
        ),
        make=_record(denied=True),
        tags=("form", "permission", "misleading"),
    ),
    Template(
        name="recorder-star",
        apps=("recorder", "files"),
        split="extended_apps",
        steps=12,
        goals=(
            "make a recording with name {name} and turn on starred for it in files",
            "record something as {name} , then star it in the recordings folder of files",
        ),
        make=_record(starred=True),
        tags=("form", "across", "toggle"),
    ),
    Template(
        name="recorder-trash",
        apps=_RECORDER,
        split="extended_apps",
        steps=5,
        goals=(
            "move the recording {name} to the trash",
            "in the recorder put {name} in the trash",
        ),
        make=_trash,
        tags=("delete",),
    ),
    Template(
        name="recorder-rename",
        apps=_RECORDER,
        split="extended_apps",
        steps=6,
        goals=(
            "rename the recording {name} to {new}",
            "in the recorder change the name of {name} to {new}",
        ),
        make=_rename,
        tags=("edit",),
    ),
    Template(
        name="maps-save",
        apps=_MAPS,
        split="extended_apps",
        steps=5,
        goals=("turn on saved for {place} in maps", "save the place {place} in maps"),
        make=_save,
        tags=("toggle", "search"),
    ),
    Template(
        name="maps-fact",
        apps=_MAPS,
        split="extended_apps",
        steps=5,
        goals=(
            "what does maps say under {fact} for {place}",
            "look up {place} in maps and answer with its {fact}",
        ),
        make=_fact,
        tags=("answer", "search"),
    ),
    Template(
        name="maps-way",
        apps=_MAPS,
        split="extended_apps",
        steps=7,
        goals=(
            "how long does it take to {place} by {way}",
            "get directions to {place} in maps and answer with the time by {way}",
        ),
        make=_way,
        tags=("answer", "search", "permission"),
    ),
    Template(
        name="maps-directions",
        apps=_MAPS,
        split="extended_apps",
        steps=6,
        goals=("show directions to {place} in maps", "open the way to {place} in maps"),
        make=_directions,
        tags=("open", "search", "permission"),
    ),
    Template(
        name="maps-missing",
        apps=_MAPS,
        split="extended_apps",
        steps=4,
        goals=("turn on saved for {place} in maps", "show directions to {place} in maps"),
        make=_no_place,
        tags=("infeasible", "search"),
    ),
    Template(
        name="maps-to-contact",
        apps=("maps", "contacts"),
        split="extended_apps",
        steps=12,
        goals=(
            "add a contact with name {name} and the phone that maps has for {place}",
            "look {place} up in maps and save its phone in contacts for {name}",
        ),
        make=_place_to_contact,
        tags=("across", "form", "search"),
    ),
)
