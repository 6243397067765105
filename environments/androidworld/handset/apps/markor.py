"""Markor: notes are files in a folder of the shared storage."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.apps.file_browser import Browser
from swarm_ui.environments.androidworld.handset.file_system import name
from swarm_ui.environments.androidworld.handset.handset import Edition, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen.widgets import (
    button,
    do,
    field,
    go,
    icon,
    options,
)
from swarm_ui.environments.phone.device.screen import Screen

APP = "markor"
ROOT = "/storage/emulated/0/Documents/Markor"
KINDS = {"Markdown (.md)": ".md", "Plain text (.txt)": ".txt", "No extension": ""}


def _open(handset: Handset, path: str) -> None:
    text = handset.read(path).decode("utf-8", "replace")
    handset.show((*handset.stack, Screen(APP, "edit", path)), {"text": text})


def _bottom(handset: Handset, folder: str) -> list[Line]:
    draft = {"kind": next(iter(KINDS))}
    return [icon("Create a new file or folder", go(Screen(APP, "create", folder), draft))]


BROWSER = Browser(app=APP, root=ROOT, title="Markor", open=_open, bottom=_bottom)


def _build(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "edit":
        save = icon("Save", do(_save))
        text = field(handset, "Text", "text", lines=True)
        return Page(title=name(screen.of), rows=[text], top=[save])
    if screen.kind == "create":
        make = partial(_create, folder=screen.of)
        rows: list[Line] = [field(handset, "Name", "name")]
        rows += options(handset, "kind", KINDS, next(iter(KINDS)))
        rows.append(
            (
                button("Folder", do(partial(make, as_folder=True))),
                button("Cancel", do(lambda h: h.back())),
                button("OK", do(partial(make, as_folder=False))),
            )
        )
        return Page(title="Create new document", rows=rows)
    return BROWSER.page(handset, screen)


def _create(handset: Handset, folder: str, as_folder: bool) -> str:
    wanted = handset.draft.get("name", "").strip()
    suffix = KINDS[handset.draft["kind"]]
    if wanted and not as_folder and not wanted.endswith((".md", ".txt")):
        wanted += suffix
    path = f"{folder}/{wanted}"
    if not wanted or "/" in wanted:
        handset.toast = "Invalid name"
        return "not created: invalid name"
    if handset.files.get(path) is not None:
        handset.toast = "File already exists"
        return "not created: a file has that name"
    handset.back()
    if as_folder:
        handset.make_folder(path)
    else:
        handset.make_folder(folder)
        handset.write(path, b"")
        _open(handset, path)
    return ""


def _save(handset: Handset) -> None:
    _keep(handset, handset.stack[-1])
    handset.toast = "Saved"


def _keep(handset: Handset, screen: Screen) -> None:
    """Write what was typed, unless the file is gone or holds it already."""
    if screen.kind != "edit" or not handset.files.is_file(screen.of):
        return
    data = handset.draft.get("text", "").encode()
    if data != handset.read(screen.of):
        handset.write(screen.of, data)


MARKOR = Edition(
    app=APP,
    package="net.gsantner.markor",
    activity="net.gsantner.markor.activity.MainActivity",
    build=_build,
    folders=(ROOT,),
    leave=_keep,
)
