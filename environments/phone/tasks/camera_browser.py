"""Tasks with camera and browser, and what they leave in other apps, on a whole phone."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.browser import PAGE, page_path
from swarm_ui.environments.phone.apps.browser import ROOT as BROWSER
from swarm_ui.environments.phone.apps.camera import PHOTO_PATH, VIDEO_PATH
from swarm_ui.environments.phone.apps.contacts import CONTACT
from swarm_ui.environments.phone.apps.notes import NOTE
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_effects import Download, SaveCapture, system_of
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import (
    Change,
    Configure,
    Create,
    Goal,
    ScreenInFront,
    Source,
)
from swarm_ui.environments.phone.tasks.task_kinds import sample
from swarm_ui.environments.phone.tasks.template import Make, Template


def photo(**fields: str) -> Create:
    """A new photo; ``lens`` and ``flash`` are chosen before it is taken."""
    form = {"lens": "back", "flash": "off"} | {
        k: v for k, v in fields.items() if k in ("lens", "flash")
    }
    wanted = {"kind": "photo", **form, **fields}
    return Create(table="file", fields=wanted, path=PHOTO_PATH, tap=SaveCapture("photo"), form=form)


def _photo(**fields: str) -> Make:
    return lambda sampler, device: Goal(words={}, wants=(photo(**fields),))


def _photo_denied(sampler: Sampler, device: Device) -> Goal:
    device.system = system_of(device).granted("camera camera", "deny")
    return Goal(words={}, wants=(photo(),))


def _photo_named(sampler: Sampler, device: Device) -> Goal:
    name = sampler.title()
    return Goal(words={"name": name}, wants=(photo(name=name),))


def _video(sampler: Sampler, device: Device) -> Goal:
    want = Create(table="file", fields={"kind": "video"}, path=VIDEO_PATH, tap=SaveCapture("video"))
    return Goal(words={}, wants=(want,))


def add_page(sampler: Sampler, device: Device, **values: str) -> tuple[int, dict[str, str]]:
    """Put one more page on the web."""
    row = {**sample(sampler, PAGE), **values}
    return device.insert("page", row), row


def download(key: int, row: dict[str, str], **fields: str) -> Create:
    """The file of a page in the downloads."""
    wanted = {"name": row["file"], "kind": "document", "folder": "downloads", **fields}
    return Create(table="file", fields=wanted, path=page_path(key), tap=Download(key))


def _bookmark(state: str) -> Make:
    def make(sampler: Sampler, device: Device) -> Goal:
        before = "off" if state == "on" else "on"
        key, row = add_page(sampler, device, bookmarked=before)
        want = Change(table="page", row=key, fields={"bookmarked": state})
        return Goal(words={"address": row["address"]}, wants=(want,))

    return make


def _fact(sampler: Sampler, device: Device) -> Goal:
    key, row = add_page(sampler, device)
    fact = sampler.pick(("phone", "price", "opens"))
    words = {"address": row["address"], "fact": fact}
    return Goal(words=words, answer=row[fact], look=page_path(key))


def _download(sampler: Sampler, device: Device) -> Goal:
    key, row = add_page(sampler, device)
    return Goal(words={"address": row["address"]}, wants=(download(key, row),))


def _download_starred(sampler: Sampler, device: Device) -> Goal:
    key, row = add_page(sampler, device)
    words = {"address": row["address"]}
    return Goal(words=words, wants=(download(key, row, starred="on"),))


def _download_moved(sampler: Sampler, device: Device) -> Goal:
    key, row = add_page(sampler, device)
    name = sampler.title()
    want = download(key, row, folder="documents", name=name)
    return Goal(words={"address": row["address"], "name": name}, wants=(want,))


def _download_offline(sampler: Sampler, device: Device) -> Goal:
    device.set("wifi", "off")
    key, row = add_page(sampler, device)
    wants = (Configure(key="wifi", value="on"), download(key, row))
    return Goal(words={"address": row["address"]}, wants=wants)


def _no_page(sampler: Sampler, device: Device) -> Goal:
    words = {"address": sampler.address()}
    look = (BROWSER, Screen("browser", "missing", words["address"]))
    return Goal(words=words, look=look, infeasible=True)


def _page_in(into: Table, slot: str, field: str, *given: str) -> Make:
    """A fact of a page in a new record."""

    def make(sampler: Sampler, device: Device) -> Goal:
        key, row = add_page(sampler, device)
        record = sample(sampler, into)
        words = {name: record[name] for name in given}
        source = Source(table="page", row=key, field=field, value=row[field])
        fields = {slot: row[field], **words}
        want = Create(table=into.name, fields=fields, source=source)
        return Goal(words={"address": row["address"], **words}, wants=(want,))

    return make


def _show(sampler: Sampler, device: Device) -> Goal:
    key, row = add_page(sampler, device)
    return Goal(words={"address": row["address"]}, wants=(ScreenInFront(path=page_path(key)),))


_CAMERA, _BROWSER = ("camera",), ("browser",)
CAMERA_TEMPLATES = (
    Template(
        name="camera-photo",
        apps=_CAMERA,
        split="extended_train",
        steps=4,
        goals=("take a photo", "take one picture with the back camera", "take a photo now"),
        make=_photo(),
        tags=("camera",),
    ),
    Template(
        name="camera-selfie-flash",
        apps=_CAMERA,
        split="extended_templates",
        steps=6,
        goals=(
            "take a photo with the front camera and flash on",
            "take a selfie with flash on",
        ),
        make=_photo(lens="front", flash="on"),
        tags=("camera", "choice"),
    ),
    Template(
        name="camera-video",
        apps=_CAMERA,
        split="extended_train",
        steps=6,
        goals=("take a video", "film a short video with the camera", "record one video"),
        make=_video,
        tags=("camera",),
    ),
    Template(
        name="camera-denied",
        apps=_CAMERA,
        split="extended_validation",
        steps=9,
        goals=("take a photo", "take one picture with the back camera"),
        make=_photo_denied,
        tags=("camera", "permission", "misleading"),
    ),
    Template(
        name="camera-to-gallery",
        apps=("camera", "gallery"),
        split="extended_templates",
        steps=12,
        goals=(
            "take a photo and rename it to {name}",
            "take a picture with the back camera and give it the name {name}",
        ),
        make=_photo_named,
        tags=("camera", "across", "edit"),
    ),
)
BROWSER_TEMPLATES = (
    Template(
        name="browser-show",
        apps=_BROWSER,
        split="extended_train",
        steps=4,
        goals=("open the page {address} in the browser", "go to {address} on the web"),
        make=_show,
        tags=("open", "search"),
    ),
    Template(
        name="browser-bookmark",
        apps=_BROWSER,
        split="extended_train",
        steps=5,
        goals=("bookmark the page {address}", "turn on bookmarked for {address} in the browser"),
        make=_bookmark("on"),
        tags=("toggle", "search"),
    ),
    Template(
        name="browser-unbookmark",
        apps=_BROWSER,
        split="extended_validation",
        steps=4,
        goals=(
            "remove {address} from the bookmarks of the browser",
            "turn off bookmarked for {address} in the browser",
        ),
        make=_bookmark("off"),
        tags=("toggle",),
    ),
    Template(
        name="browser-fact",
        apps=_BROWSER,
        split="extended_train",
        steps=5,
        goals=(
            "what does the page {address} say under {fact}",
            "open {address} in the browser and answer with its {fact}",
        ),
        make=_fact,
        tags=("answer", "search"),
    ),
    Template(
        name="browser-download",
        apps=_BROWSER,
        split="extended_train",
        steps=5,
        goals=(
            "download the file of the page {address}",
            "go to {address} in the browser and download its file",
        ),
        make=_download,
        tags=("download", "search"),
    ),
    Template(
        name="browser-missing",
        apps=_BROWSER,
        split="extended_train",
        steps=4,
        goals=(
            "bookmark the page {address}",
            "download the file of the page {address}",
        ),
        make=_no_page,
        tags=("infeasible", "search"),
    ),
    Template(
        name="browser-download-star",
        apps=("browser", "files"),
        split="extended_templates",
        steps=11,
        goals=(
            "download the file of the page {address} and turn on starred for it in files",
            "get the file of {address} with the browser , then star it in the downloads folder",
        ),
        make=_download_starred,
        tags=("download", "across", "toggle"),
    ),
    Template(
        name="browser-download-move",
        apps=("browser", "files"),
        split="extended_train",
        steps=14,
        goals=(
            "download the file of the page {address} , then move it to documents under the name "
            "{name}",
            "get the file of {address} , rename it to {name} and put it in the documents folder",
        ),
        make=_download_moved,
        tags=("download", "across", "edit"),
    ),
    Template(
        name="browser-offline",
        apps=_BROWSER,
        split="extended_validation",
        steps=10,
        goals=(
            "turn wifi on and download the file of the page {address}",
            "download the file of {address} in the browser , with wifi on",
        ),
        make=_download_offline,
        tags=("download", "across", "misleading"),
    ),
    Template(
        name="page-to-contact",
        apps=("browser", "contacts"),
        split="extended_train",
        steps=12,
        goals=(
            "add a contact with name {name} and the phone that the page {address} gives",
            "look up the phone on {address} and save it in contacts for {name}",
        ),
        make=_page_in(CONTACT, "phone", "phone", "name"),
        tags=("across", "form", "search"),
    ),
    Template(
        name="page-to-note",
        apps=("browser", "notes"),
        split="extended_templates",
        steps=12,
        goals=(
            "write a note titled {title} with the price of the page {address} as body",
            "copy the price on {address} into the body of a new note with title {title}",
        ),
        make=_page_in(NOTE, "body", "price", "title"),
        tags=("across", "form", "search"),
    ),
)
TEMPLATES = CAMERA_TEMPLATES + BROWSER_TEMPLATES
