"""Camera, Audio Recorder and Simple Draw: apps that create files."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.file_system import SHARED
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.effects import Back
from swarm_ui.environments.phone.state import Screen

RECORDS = f"{SHARED}/Android/data/com.dimowner.audiorecorder/files/Music/records"
_PLACES = ("Pictures", "Download", "DCIM")


def _camera(handset: Handset, screen: Screen) -> Page:
    film = screen.kind == "video"
    modes = ui.tabs("camera", {"Camera": "list", "Video": "video"}, screen.kind)
    rows: list[Line] = [ui.image("Viewfinder"), *_running(handset)]
    shutter = ui.icon("Shutter", Call(_start if film else _photo))
    if "since" in handset.draft:
        shutter = ui.icon("Stop", Call(_stop))
    return Page(title="Video" if film else "Camera", rows=rows, bottom=[shutter, modes])


def _stamp(handset: Handset) -> str:
    return f"{handset.when():%Y%m%d_%H%M%S}"


def _photo(handset: Handset) -> str:
    handset.write(f"{SHARED}/Pictures/IMG_{_stamp(handset)}.jpg", _stamp(handset).encode())
    return "Photo saved"


def _start(handset: Handset) -> None:
    handset.draft = {"since": str(handset.now)}


def _running(handset: Handset) -> list[Line]:
    """Seconds since the recording began."""
    since = handset.draft.get("since")
    return [ui.text_row(f"00:{handset.now - int(since):02d}")] if since else []


def _stop(handset: Handset) -> str:
    handset.draft = {}
    handset.write(f"{SHARED}/Movies/VID_{_stamp(handset)}.mp4", _stamp(handset).encode())
    return "Video saved"


def _recorder(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "save":
        rows: list[Line] = [ui.field(handset, "Record name", "name")]
        rows.append((ui.button("Cancel", Back()), ui.button("Save", Call(_save_record))))
        return Page(title="Save record", rows=rows)
    if rows := _running(handset):
        stop = ui.icon("Stop recording", Call(_end_record))
        return Page(title="Recording", rows=rows, bottom=[stop])
    folder = [path.rpartition("/")[2] for path in handset.files.children(RECORDS)]
    rows = [ui.heading("Records"), *(ui.text_row(name) for name in folder)]
    start = ui.icon("Start recording", Call(_start))
    return Page(title="Audio Recorder", rows=rows, bottom=[start])


def _end_record(handset: Handset) -> None:
    handset.draft = {}
    number = len(handset.files.children(RECORDS)) + 1
    save = Screen("audio recorder", "save")
    handset.show((*handset.stack, save), {"name": f"Record-{number}"})


def _save_record(handset: Handset) -> str:
    handset.make_folder(RECORDS)
    return _save(handset, RECORDS, "m4a", "Record saved")


def _draw(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "save":
        rows: list[Line] = [ui.field(handset, "Filename", "name"), ui.heading("Folder")]
        rows += ui.options(handset, "folder", _PLACES, _PLACES[0])
        rows.append(ui.heading("Extension"))
        rows += ui.options(handset, "suffix", ("png", "svg", "jpg"), "png")
        rows.append((ui.button("Cancel", Back()), ui.button("OK", Call(_save_drawing))))
        return Page(title="Save as", rows=rows)
    save = ui.icon("Save", ui.open_screen("simple draw pro", "save"))
    return Page(title="Simple Draw", rows=[ui.image("Canvas")], top=[save])


def _save_drawing(handset: Handset) -> str:
    folder = f"{SHARED}/{handset.draft.get('folder', _PLACES[0])}"
    suffix = handset.draft.get("suffix", "png")
    return _save(handset, folder, suffix, "File saved successfully")


def _save(handset: Handset, folder: str, suffix: str, toast: str) -> str:
    """Write a file under the typed name and leave the form."""
    name = ui.typed_file_name(handset)
    if not name:
        return "Invalid name"
    handset.write(f"{folder}/{name}.{suffix}", _stamp(handset).encode())
    handset.back()
    return toast


CAMERA = AppSpec(
    name="camera", package="com.android.camera2", activity="com.android.camera.CameraLauncher",
    build=_camera,
)  # fmt: skip
RECORDER = AppSpec(
    name="audio recorder",
    package="com.dimowner.audiorecorder",
    activity="com.dimowner.audiorecorder.app.welcome.WelcomeActivity",
    build=_recorder,
    folders=(RECORDS,),
)
DRAW = AppSpec(
    name="simple draw pro",
    package="com.simplemobiletools.draw.pro",
    activity="com.simplemobiletools.draw.pro.activities.MainActivity",
    build=_draw,
)
