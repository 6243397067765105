"""Tasks with the camera and the browser of a full device, and with the files that they make."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.phone.apps.camera import PHOTO_PATH, VIDEO_PATH
from swarm_ui.environments.phone.apps.record_apps import CONTACT, NOTE
from swarm_ui.environments.phone.apps.search_apps import PAGE
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.effects import Download, SaveCapture, system_of
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import (
    Change,
    Configure,
    Create,
    Goal,
    ScreenInFront,
    Source,
)
from swarm_ui.environments.phone.tasks.task_kinds import (
    add_record,
    fact,
    not_found,
    values,
    with_record,
)
from swarm_ui.environments.phone.tasks.template import (
    Make,
    extended_templates,
    extended_train,
    extended_validation,
)

_CAMERA = (("lens", "back"), ("flash", "off"))
"""Settings of the camera, and their defaults."""


def photo(**fields: str) -> Create:
    """A new photo; ``lens`` and ``flash`` are chosen before it is taken."""
    form = {name: fields.get(name, default) for name, default in _CAMERA}
    wanted = {"kind": "photo", "folder": "pictures", **form, **fields}
    return Create(table="file", fields=wanted, path=PHOTO_PATH, tap=SaveCapture("photo"), form=form)


def _photo(**fields: str) -> Make:
    return lambda sampler, device: Goal(words={}, wants=(photo(**fields),))


def denied(make: Make, permission: str) -> Make:
    """The same task on a device on which a permission was denied before."""

    def start(sampler: Sampler, device: Device) -> Goal:
        device.system = system_of(device).granted(permission, "deny")
        return make(sampler, device)

    return start


def _photo_named(sampler: Sampler, device: Device) -> Goal:
    name = sampler.title()
    return Goal(words={"name": name}, wants=(photo(name=name),))


def _video(sampler: Sampler, device: Device) -> Goal:
    fields = {"kind": "video", "folder": "pictures"}
    want = Create(table="file", fields=fields, path=VIDEO_PATH, tap=SaveCapture("video"))
    return Goal(words={}, wants=(want,))


add_page = partial(add_record, PAGE)


def download(key: int, row: Row, **fields: str) -> Create:
    """A file of a web page is in the downloads."""
    wanted = {"name": row["file"], "kind": "document", "folder": "downloads", **fields}
    return Create(table="file", fields=wanted, path=PAGE.path("detail", key), tap=Download(key))


def bookmark(state: str) -> Make:
    add = partial(add_page, bookmarked="off" if state == "on" else "on")
    fields = {"bookmarked": state}
    return with_record(
        add, ("address",), lambda key, row: Change(table="page", row=key, fields=fields)
    )


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


def _page_in(into: Table, slot: str, field: str, *given: str) -> Make:
    """Task: write a fact from a web page into a new record."""

    def make(sampler: Sampler, device: Device) -> Goal:
        key, row = add_page(sampler, device)
        words = values(sampler, into, given)
        source = Source.of(PAGE, key, row, field)
        fields = {slot: row[field], **words}
        want = Create(table=into.name, fields=fields, source=source)
        return Goal(words={"address": row["address"], **words}, wants=(want,))

    return make


_fact = fact(add_page, PAGE, "phone", "price", "opens")
_no_page = not_found(PAGE, Sampler.address)
save_file = with_record(add_page, ("address",), download)
_download_starred = with_record(add_page, ("address",), partial(download, starred="on"))
_show = with_record(
    add_page, ("address",), lambda key, row: ScreenInFront(path=PAGE.path("detail", key))
)
TEMPLATES = (
    extended_train("camera-photo", _photo(), 4, "camera", "camera").phrased(
        "take a photo", "take one picture with the back camera", "take a photo now"
    ),
    extended_templates(
        "camera-selfie-flash", _photo(lens="front", flash="on"), 6, "camera", "camera choice"
    ).phrased("take a photo with the front camera and flash on", "take a selfie with flash on"),
    extended_train("camera-video", _video, 6, "camera", "camera").phrased(
        "take a video", "film a short video with the camera", "record one video"
    ),
    extended_validation(
        "camera-denied",
        denied(_photo(), "camera camera"),
        9,
        "camera",
        "camera permission misleading",
    ).phrased("take a photo", "take one picture with the back camera"),
    extended_templates(
        "camera-to-gallery", _photo_named, 12, "camera gallery", "camera across edit"
    ).phrased(
        "take a photo and rename it to {name}",
        "take a picture with the back camera and give it the name {name}",
    ),
    extended_train("browser-show", _show, 4, "browser", "open search").phrased(
        "open the page {address} in the browser", "go to {address} on the web"
    ),
    extended_train("browser-bookmark", bookmark("on"), 5, "browser", "toggle search").phrased(
        "bookmark the page {address}", "turn on bookmarked for {address} in the browser"
    ),
    extended_validation("browser-unbookmark", bookmark("off"), 4, "browser", "toggle").phrased(
        "remove {address} from the bookmarks of the browser",
        "turn off bookmarked for {address} in the browser",
    ),
    extended_train("browser-fact", _fact, 5, "browser", "answer search").phrased(
        "what does the page {address} say under {fact}",
        "open {address} in the browser and answer with its {fact}",
    ),
    extended_train("browser-download", save_file, 5, "browser", "download search").phrased(
        "download the file of the page {address}",
        "go to {address} in the browser and download its file",
    ),
    extended_train("browser-missing", _no_page, 4, "browser", "infeasible search").phrased(
        "bookmark the page {address}", "download the file of the page {address}"
    ),
    extended_templates(
        "browser-download-star", _download_starred, 11, "browser files", "download across toggle"
    ).phrased(
        "download the file of the page {address} and turn on starred for it in files",
        "get the file of {address} with the browser , then star it in the downloads folder",
    ),
    extended_train(
        "browser-download-move", _download_moved, 14, "browser files", "download across edit"
    ).phrased(
        "download the file of the page {address} , then move it to documents under the name {name}",
        "get the file of {address} , rename it to {name} and put it in the documents folder",
    ),
    extended_validation(
        "browser-offline", _download_offline, 10, "browser", "download across misleading"
    ).phrased(
        "turn wifi on and download the file of the page {address}",
        "download the file of {address} in the browser , with wifi on",
    ),
    extended_train(
        "page-to-contact",
        _page_in(CONTACT, "phone", "phone", "name"),
        12,
        "browser contacts",
        "across form search",
    ).phrased(
        "add a contact with name {name} and the phone that the page {address} gives",
        "look up the phone on {address} and save it in contacts for {name}",
    ),
    extended_templates(
        "page-to-note",
        _page_in(NOTE, "body", "price", "title"),
        12,
        "browser notes",
        "across form search",
    ).phrased(
        "write a note titled {title} with the price of the page {address} as body",
        "copy the price on {address} into the body of a new note with title {title}",
    ),
)
