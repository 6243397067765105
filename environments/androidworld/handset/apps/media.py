"""Camera, recorder and drawing: apps that make files."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.file_system import SHARED
from swarm_ui.environments.androidworld.handset.handset import (
    Control,
    Edition,
    Handset,
    Line,
    Page,
)
from swarm_ui.environments.androidworld.handset.screen.widgets import (
    button,
    do,
    drop,
    field,
    go,
    heading,
    icon,
    options,
    told,
)
from swarm_ui.environments.phone.device.screen import Screen

RECORDS = f"{SHARED}/Android/data/com.dimowner.audiorecorder/files/Music/records"
_PLACES = ("Pictures", "Download", "DCIM")


def _camera(handset: Handset, screen: Screen) -> Page:
    film = screen.kind == "video"
    modes = tuple(
        Control("tab", text, None, (kind == "video") == film, do(partial(_mode, kind=kind)))
        for text, kind in (("Camera", "list"), ("Video", "video"))
    )
    running = handset.draft.get("since")
    rows: list[Line] = [Control("image", "", description="Viewfinder", quiet=True)]
    if running:
        rows.append(told(f"00:{handset.now - int(running):02d}"))
        shutter = icon("Stop", do(_stop))
    else:
        shutter = icon("Shutter", do(_film if film else _photo))
    return Page(title="Video" if film else "Camera", rows=rows, bottom=[shutter, modes])


def _mode(handset: Handset, kind: str) -> None:
    handset.show((Screen("camera", kind),))


def _stamp(handset: Handset) -> str:
    return f"{handset.when():%Y%m%d_%H%M%S}"


def _photo(handset: Handset) -> None:
    handset.write(f"{SHARED}/Pictures/IMG_{_stamp(handset)}.jpg", _stamp(handset).encode())
    handset.toast = "Photo saved"


def _film(handset: Handset) -> None:
    handset.draft = {"since": str(handset.now)}


def _stop(handset: Handset) -> None:
    handset.draft = {}
    handset.write(f"{SHARED}/Movies/VID_{_stamp(handset)}.mp4", _stamp(handset).encode())
    handset.toast = "Video saved"


def _recorder(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "save":
        rows: list[Line] = [field(handset, "Record name", "name")]
        rows.append((button("Cancel", do(lambda h: h.back())), button("Save", do(_keep_record))))
        return Page(title="Save record", rows=rows)
    running = handset.draft.get("since")
    if running:
        rows = [told(f"00:{handset.now - int(running):02d}")]
        return Page(title="Recording", rows=rows, bottom=[icon("Stop recording", do(_end_record))])
    folder = [path.rpartition("/")[2] for path in handset.files.children(RECORDS)]
    rows = [heading("Records"), *(told(name) for name in folder)]
    start = icon("Start recording", do(_start_record))
    return Page(title="Audio Recorder", rows=rows, bottom=[start])


def _start_record(handset: Handset) -> None:
    handset.draft = {"since": str(handset.now)}


def _end_record(handset: Handset) -> None:
    handset.draft = {}
    number = len(handset.files.children(RECORDS)) + 1
    save = Screen("audio recorder", "save")
    handset.show((*handset.stack, save), {"name": f"Record-{number}"})


def _keep_record(handset: Handset) -> str:
    wanted = handset.draft.get("name", "").strip()
    if not wanted or "/" in wanted:
        handset.toast = "Invalid name"
        return "not saved: invalid name"
    path = f"{RECORDS}/{wanted}.m4a"
    handset.make_folder(RECORDS)
    handset.write(path, _stamp(handset).encode())
    drop(handset, 1, "Record saved")
    return ""


def _draw(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "save":
        rows: list[Line] = [field(handset, "Filename", "name"), heading("Folder")]
        rows += options(handset, "folder", _PLACES, _PLACES[0])
        rows.append(heading("Extension"))
        rows += options(handset, "suffix", ("png", "svg", "jpg"), "png")
        rows.append((button("Cancel", do(lambda h: h.back())), button("OK", do(_keep_drawing))))
        return Page(title="Save as", rows=rows)
    canvas = Control("image", "", description="Canvas", quiet=True)
    save = icon("Save", go(Screen("simple draw pro", "save")))
    return Page(title="Simple Draw", rows=[canvas], top=[save])


def _keep_drawing(handset: Handset) -> str:
    draft = handset.draft
    wanted = draft.get("name", "").strip()
    if not wanted or "/" in wanted:
        handset.toast = "Invalid name"
        return "not saved: invalid name"
    folder = draft.get("folder", _PLACES[0])
    path = f"{SHARED}/{folder}/{wanted}.{draft.get('suffix', 'png')}"
    handset.write(path, _stamp(handset).encode())
    drop(handset, 1, "File saved successfully")
    return ""


CAMERA = Edition(
    app="camera",
    package="com.android.camera2",
    activity="com.android.camera.CameraLauncher",
    build=_camera,
)
RECORDER = Edition(
    app="audio recorder",
    package="com.dimowner.audiorecorder",
    activity="com.dimowner.audiorecorder.app.welcome.WelcomeActivity",
    build=_recorder,
    folders=(RECORDS,),
)
DRAW = Edition(
    app="simple draw pro",
    package="com.simplemobiletools.draw.pro",
    activity="com.simplemobiletools.draw.pro.activities.MainActivity",
    build=_draw,
)
