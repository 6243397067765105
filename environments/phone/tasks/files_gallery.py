"""Tasks with files and with the gallery of a full device."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.phone.apps.files import (
    FOLDERS,
    ROOT,
    TRASH,
    file_path,
    folder,
    in_folder,
    random_file,
)
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Change, Delete, Goal, ScreenInFront, Source
from swarm_ui.environments.phone.tasks.task_kinds import with_record
from swarm_ui.environments.phone.tasks.template import (
    Make,
    extended_templates,
    extended_train,
    extended_validation,
)


def add_file(sampler: Sampler, device: Device, where: str, **fields: str) -> tuple[int, Row]:
    """Put one more file on the device."""
    row = {**random_file(sampler, where), **fields}
    return device.insert("file", row), row


def _star(via: str, where: str) -> Make:
    add = partial(add_file, where=where, starred="off")
    fields = {"starred": "on"}
    return with_record(
        add, ("name",), lambda key, row: Change(table="file", row=key, fields=fields, via=via)
    )


def trash(via: str, where: str, *names: str) -> Make:
    add = partial(add_file, where=where)
    return with_record(add, names, lambda key, row: Delete(table="file", row=key, via=via))


def _size(sampler: Sampler, device: Device) -> Goal:
    where = sampler.pick(FOLDERS)
    key, row = add_file(sampler, device, where)
    words = {"name": row["name"], "folder": where}
    return Goal(words=words, answer=f"{row['size']} mb", look=file_path(key, row))


def _move(sampler: Sampler, device: Device) -> Goal:
    where = sampler.pick(FOLDERS)
    key, row = add_file(sampler, device, where)
    to = sampler.pick([name for name in FOLDERS if name != where])
    want = Change(table="file", row=key, fields={"folder": to})
    return Goal(words={"name": row["name"], "folder": where, "to": to}, wants=(want,))


def _rename(sampler: Sampler, device: Device) -> Goal:
    key, row = add_file(sampler, device, "documents")
    new = sampler.title()
    want = Change(table="file", row=key, fields={"name": new})
    return Goal(words={"name": row["name"], "new": new}, wants=(want,))


def _restore(sampler: Sampler, device: Device) -> Goal:
    was = sampler.pick(FOLDERS)
    key, row = add_file(sampler, device, was, folder=TRASH, was=was)
    add_file(sampler, device, was, folder=TRASH, was=was)
    want = Change(table="file", row=key, fields={"folder": was})
    return Goal(words={"name": row["name"]}, wants=(want,))


def _similar(sampler: Sampler, device: Device) -> Goal:
    """Task: delete a file. There is another file with a similar name, and one with the same name in
    another folder."""
    name = sampler.noun()
    key, _ = add_file(sampler, device, "downloads", name=name)
    add_file(sampler, device, "downloads", name=sampler.phrase_after(name))
    add_file(sampler, device, "documents", name=name)
    want = Delete(table="file", row=key)
    return Goal(words={"name": name, "folder": "downloads"}, wants=(want,))


def _missing(sampler: Sampler, device: Device) -> Goal:
    """Task about a file that is not in the folder that the goal names; it is infeasible."""
    _, row = add_file(sampler, device, "documents")
    words = {"name": row["name"], "folder": "downloads"}
    return Goal(words=words, look=(ROOT, folder("downloads")), infeasible=True)


def _count(sampler: Sampler, device: Device) -> Goal:
    where = sampler.pick(FOLDERS)
    for _ in range(sampler.pick((1, 2, 3))):
        add_file(sampler, device, where)
    count = str(len(in_folder(device, where)))
    return Goal(words={"folder": where}, answer=count, look=(ROOT, folder(where)))


def _larger(sampler: Sampler, device: Device) -> Goal:
    (one, row), (two, other) = (add_file(sampler, device, "documents") for _ in range(2))
    larger = max((row, other), key=lambda r: int(r["size"]))
    sources = tuple(
        Source(table="file", row=k, field="size", value=f"{r['size']} mb")
        for k, r in ((one, row), (two, other))
    )
    words = {"name": row["name"], "name2": other["name"]}
    return Goal(words=words, answer=larger["name"], sources=sources)


def _far(sampler: Sampler, device: Device) -> Goal:
    """Task: star a file in a folder that must be scrolled."""
    keys = [add_file(sampler, device, "downloads")[0] for _ in range(sampler.pick((10, 13)))]
    key = sampler.pick(keys[6:])
    want = Change(table="file", row=key, fields={"starred": "on"})
    device.update("file", key, {"starred": "off"})
    return Goal(words={"name": device.tables["file"][key]["name"]}, wants=(want,))


_show = with_record(
    partial(add_file, where="pictures"),
    ("name",),
    lambda key, row: ScreenInFront(path=file_path(key, row, "gallery")),
)
_MOVE_TO_TRASH = (
    "move {name} in the {folder} folder of files to the trash",
    "in files put {name} from {folder} in the trash",
)
_STAR_DOWNLOAD = (
    "turn on starred for the file {name} in downloads",
    "star the file {name} in the downloads folder",
)
TEMPLATES = (
    extended_train("files-size", _size, 5, "files", "answer").phrased(
        "what is the size of {name} in the {folder} folder of files",
        "look up how large the file {name} in {folder} is and answer with its size",
    ),
    extended_train(
        "files-trash", trash("files", "documents", "name", "folder"), 6, "files", "delete"
    ).phrased(*_MOVE_TO_TRASH),
    extended_validation("files-trash-similar", _similar, 6, "files", "delete misleading").phrased(
        *_MOVE_TO_TRASH
    ),
    extended_train("files-trash-missing", _missing, 3, "files", "infeasible misleading").phrased(
        *_MOVE_TO_TRASH
    ),
    extended_templates("files-restore", _restore, 5, "files", "edit").phrased(
        "restore {name} from the trash of files", "bring the file {name} back from the trash"
    ),
    extended_train("files-move", _move, 7, "files", "edit choice").phrased(
        "move the file {name} from {folder} to {to}",
        "in files move {name} from the {folder} folder to the {to} folder",
    ),
    extended_train("files-rename", _rename, 7, "files", "edit").phrased(
        "rename the file {name} in documents to {new}",
        "in the documents folder of files change the name of {name} to {new}",
    ),
    extended_train("files-star", _star("files", "downloads"), 5, "files", "toggle").phrased(
        *_STAR_DOWNLOAD
    ),
    extended_validation("files-star-far", _far, 7, "files", "toggle scroll").phrased(
        *_STAR_DOWNLOAD
    ),
    extended_templates("files-count", _count, 4, "files", "answer").phrased(
        "how many files are in the {folder} folder",
        "count the files in {folder} and answer with the number",
    ),
    extended_templates("files-larger", _larger, 9, "files", "answer several").phrased(
        "which of the files {name} and {name2} in documents is larger",
        "compare the sizes of {name} and {name2} in documents and answer with the name of the "
        "larger file",
    ),
    extended_train("gallery-star", _star("gallery", "pictures"), 4, "gallery", "toggle").phrased(
        "turn on starred for {name} in the gallery", "star the picture {name}"
    ),
    extended_train(
        "gallery-trash", trash("gallery", "pictures", "name"), 5, "gallery", "delete"
    ).phrased("move {name} in the gallery to the trash", "put the picture {name} in the trash"),
    extended_templates("gallery-show", _show, 3, "gallery", "open").phrased(
        "show {name} in the gallery", "open the picture {name} in the gallery"
    ),
)
