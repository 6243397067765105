"""Markor: notes as files in a folder of the shared storage."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.apps.files.file_browser import FileBrowser
from swarm_ui.environments.androidworld.handset.file_system import name
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.effects import Back
from swarm_ui.environments.phone.state import Screen

APP = "markor"
ROOT = "/storage/emulated/0/Documents/Markor"
KINDS = {"Markdown (.md)": ".md", "Plain text (.txt)": ".txt", "No extension": ""}


def _open(handset: Handset, path: str) -> None:
    text = handset.read(path).decode("utf-8", "replace")
    handset.show((*handset.stack, Screen(APP, "edit", path)), {"text": text})


def _bottom(handset: Handset, folder: str) -> list[Line]:
    draft = {"kind": next(iter(KINDS))}
    return [
        ui.icon("Create a new file or folder", ui.open_screen(APP, "create", folder, draft=draft))
    ]


BROWSER = FileBrowser(app=APP, root=ROOT, title="Markor", open=_open, bottom=_bottom)


def _build(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "edit":
        save = ui.icon("Save", Call(_save))
        text = ui.field(handset, "Text", "text", multiline=True)
        return Page(title=name(screen.of), rows=[text], top=[save])
    if screen.kind == "create":
        make = partial(_create, folder=screen.of)
        rows: list[Line] = [ui.field(handset, "Name", "name")]
        rows += ui.options(handset, "kind", KINDS, next(iter(KINDS)))
        rows.append(
            (
                ui.button("Folder", Call(partial(make, as_folder=True))),
                ui.button("Cancel", Back()),
                ui.button("OK", Call(partial(make, as_folder=False))),
            )
        )
        return Page(title="Create new document", rows=rows)
    return BROWSER.page(handset, screen)


def _create(handset: Handset, folder: str, as_folder: bool) -> str:
    typed = ui.typed_file_name(handset)
    if not typed:
        return "Invalid name"
    if not as_folder and not typed.endswith((".md", ".txt")):
        typed += KINDS[handset.draft["kind"]]
    path = f"{folder}/{typed}"
    if handset.files.get(path) is not None:
        return "File already exists"
    handset.back()
    if as_folder:
        handset.make_folder(path)
    else:
        handset.make_folder(folder)
        handset.write(path, b"")
        _open(handset, path)
    return ""


def _save(handset: Handset) -> str:
    _write_typed_text(handset, handset.stack[-1])
    return "Saved"


def _write_typed_text(handset: Handset, screen: Screen) -> None:
    """Write the typed text, unless the file is gone or has this text already."""
    if screen.kind != "edit" or not handset.files.is_file(screen.of):
        return
    data = handset.draft.get("text", "").encode()
    if data != handset.read(screen.of):
        handset.write(screen.of, data)


MARKOR = AppSpec(
    name=APP,
    package="net.gsantner.markor",
    activity="net.gsantner.markor.activity.MainActivity",
    build=_build,
    folders=(ROOT,),
    on_leave=_write_typed_text,
)
