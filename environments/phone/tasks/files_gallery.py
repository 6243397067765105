"""Tasks with files and with the gallery, on a whole phone."""

from __future__ import annotations

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
from swarm_ui.environments.phone.tasks.template import Make, Template


def add_file(sampler: Sampler, device: Device, where: str, **values: str) -> tuple[int, Row]:
    """Put one more file on the device."""
    row = {**random_file(sampler, where), **values}
    return device.insert("file", row), row


def _change(via: str, where: str, **changes: str) -> Make:
    """One file with other values."""

    def make(sampler: Sampler, device: Device) -> Goal:
        opposite = {k: "off" for k in changes if k == "starred"}
        key, row = add_file(sampler, device, where, **opposite)
        want = Change(table="file", row=key, fields=changes, via=via)
        return Goal(words={"name": row["name"]}, wants=(want,))

    return make


def _delete(via: str, where: str) -> Make:
    def make(sampler: Sampler, device: Device) -> Goal:
        key, row = add_file(sampler, device, where)
        words = {"name": row["name"]} | ({"folder": where} if via == "files" else {})
        return Goal(words=words, wants=(Delete(table="file", row=key, via=via),))

    return make


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
    """Two more files have almost the same name, one of them the very same in another folder."""
    name = sampler.noun()
    key, _ = add_file(sampler, device, "downloads", name=name)
    add_file(sampler, device, "downloads", name=sampler.phrase_after(name))
    add_file(sampler, device, "documents", name=name)
    want = Delete(table="file", row=key)
    return Goal(words={"name": name, "folder": "downloads"}, wants=(want,))


def _missing(sampler: Sampler, device: Device) -> Goal:
    """The file is in another folder than the goal says."""
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
    """A folder that must be scrolled."""
    keys = [add_file(sampler, device, "downloads")[0] for _ in range(sampler.pick((10, 13)))]
    key = sampler.pick(keys[6:])
    want = Change(table="file", row=key, fields={"starred": "on"})
    device.update("file", key, {"starred": "off"})
    return Goal(words={"name": device.tables["file"][key]["name"]}, wants=(want,))


def _show(sampler: Sampler, device: Device) -> Goal:
    key, row = add_file(sampler, device, "pictures")
    return Goal(
        words={"name": row["name"]}, wants=(ScreenInFront(path=file_path(key, row, "gallery")),)
    )


_FILES, _GALLERY = ("files",), ("gallery",)
TEMPLATES = (
    Template(
        name="files-size",
        apps=_FILES,
        split="extended_train",
        steps=5,
        goals=(
            "what is the size of {name} in the {folder} folder of files",
            "look up how large the file {name} in {folder} is and answer with its size",
        ),
        make=_size,
        tags=("answer",),
    ),
    Template(
        name="files-trash",
        apps=_FILES,
        split="extended_train",
        steps=6,
        goals=(
            "move {name} in the {folder} folder of files to the trash",
            "in files put {name} from {folder} in the trash",
        ),
        make=_delete("files", "documents"),
        tags=("delete",),
    ),
    Template(
        name="files-trash-similar",
        apps=_FILES,
        split="extended_validation",
        steps=6,
        goals=(
            "move {name} in the {folder} folder of files to the trash",
            "in files put {name} from {folder} in the trash",
        ),
        make=_similar,
        tags=("delete", "misleading"),
    ),
    Template(
        name="files-trash-missing",
        apps=_FILES,
        split="extended_train",
        steps=3,
        goals=(
            "move {name} in the {folder} folder of files to the trash",
            "in files put {name} from {folder} in the trash",
        ),
        make=_missing,
        tags=("infeasible", "misleading"),
    ),
    Template(
        name="files-restore",
        apps=_FILES,
        split="extended_templates",
        steps=5,
        goals=(
            "restore {name} from the trash of files",
            "bring the file {name} back from the trash",
        ),
        make=_restore,
        tags=("edit",),
    ),
    Template(
        name="files-move",
        apps=_FILES,
        split="extended_train",
        steps=7,
        goals=(
            "move the file {name} from {folder} to {to}",
            "in files move {name} from the {folder} folder to the {to} folder",
        ),
        make=_move,
        tags=("edit", "choice"),
    ),
    Template(
        name="files-rename",
        apps=_FILES,
        split="extended_train",
        steps=7,
        goals=(
            "rename the file {name} in documents to {new}",
            "in the documents folder of files change the name of {name} to {new}",
        ),
        make=_rename,
        tags=("edit",),
    ),
    Template(
        name="files-star",
        apps=_FILES,
        split="extended_train",
        steps=5,
        goals=(
            "turn on starred for the file {name} in downloads",
            "star the file {name} in the downloads folder",
        ),
        make=_change("files", "downloads", starred="on"),
        tags=("toggle",),
    ),
    Template(
        name="files-star-far",
        apps=_FILES,
        split="extended_validation",
        steps=7,
        goals=(
            "turn on starred for the file {name} in downloads",
            "star the file {name} in the downloads folder",
        ),
        make=_far,
        tags=("toggle", "scroll"),
    ),
    Template(
        name="files-count",
        apps=_FILES,
        split="extended_templates",
        steps=4,
        goals=(
            "how many files are in the {folder} folder",
            "count the files in {folder} and answer with the number",
        ),
        make=_count,
        tags=("answer",),
    ),
    Template(
        name="files-larger",
        apps=_FILES,
        split="extended_templates",
        steps=9,
        goals=(
            "which of the files {name} and {name2} in documents is larger",
            "compare the sizes of {name} and {name2} in documents and answer with the name of the "
            "larger file",
        ),
        make=_larger,
        tags=("answer", "several"),
    ),
    Template(
        name="gallery-star",
        apps=_GALLERY,
        split="extended_train",
        steps=4,
        goals=("turn on starred for {name} in the gallery", "star the picture {name}"),
        make=_change("gallery", "pictures", starred="on"),
        tags=("toggle",),
    ),
    Template(
        name="gallery-trash",
        apps=_GALLERY,
        split="extended_train",
        steps=5,
        goals=(
            "move {name} in the gallery to the trash",
            "put the picture {name} in the trash",
        ),
        make=_delete("gallery", "pictures"),
        tags=("delete",),
    ),
    Template(
        name="gallery-show",
        apps=_GALLERY,
        split="extended_templates",
        steps=3,
        goals=("show {name} in the gallery", "open the picture {name} in the gallery"),
        make=_show,
        tags=("open",),
    ),
)
