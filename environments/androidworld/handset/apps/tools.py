"""Settings, the clipboard, the clock, and the apps that create files: Camera, Audio Recorder and
Simple Draw."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.file_system import SHARED, name
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.phone.apps import PHONE
from swarm_ui.environments.phone.effects import SetSetting
from swarm_ui.environments.phone.state import Screen
from swarm_ui.environments.phone.view import app_screen

_SETTINGS = PHONE.apps["settings"]
LEVELS = {"0%": "1", "25%": "64", "50%": "128", "75%": "191", "100%": "255"}


def _settings(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "brightness":
        now = handset.settings["brightness"]
        rows = [
            ui.radio(share, value == now, SetSetting("brightness", value))
            for share, value in LEVELS.items()
        ]
        return Page(title="Brightness level", rows=rows)
    widgets = list(app_screen(_SETTINGS, handset, screen))
    if screen.kind == "category" and screen.of == "display":
        share = f"{round((int(handset.settings['brightness']) - 1) / 254 * 100)}%"
        widgets.append(ui.item("brightness level", share, ui.go("brightness")))
    return Page(title=screen.of or "settings", rows=widgets)


SETTINGS = AppSpec(
    "settings", "com.android.settings", "com.android.settings.Settings", _settings,
    settings={key: place.choices[0] for key, place in _SETTINGS.settings.items()}
    | {"brightness": "128"},
)  # fmt: skip
CLIPPER = AppSpec(
    "clipper", "ca.zgrs.clipper", "ca.zgrs.clipper.Main",
    lambda h, _: Page(title="Clipper", rows=[ui.text_row("Clipboard", h.clipboard)]),
)  # fmt: skip


# -- the clock: a timer that is set and not started, and a stopwatch -------------------------------

CLOCK_TABS = ("Alarm", "Clock", "Timer", "Stopwatch")


def _clock(handset: Handset, screen: Screen) -> Page:
    tab, when = screen.of or "Alarm", handset.when()
    tabs = tuple(ui.tab(one, one == tab, "list", one) for one in CLOCK_TABS)
    rows: list[Line] = [ui.text_row("No alarms")]
    if tab == "Clock":
        rows = [ui.text_row(f"{when:%H:%M}", f"{when:%a, %b} {when.day}")]
    elif tab != "Alarm":
        rows = _timer(handset) if tab == "Timer" else _stopwatch(handset)
    return Page(title=tab, rows=rows, bottom=[tabs])


def _timer(handset: Handset) -> list[Line]:
    digits = handset.settings["timer"]
    padded = digits.rjust(6, "0")
    rows: list[Line] = [ui.text_row(f"{padded[:2]}h {padded[2:4]}m {padded[4:]}s")]
    for keys in (("1", "2", "3"), ("4", "5", "6"), ("7", "8", "9"), ("00", "0", "del")):
        rows.append(tuple(ui.button(key, Call(_type, key)) for key in keys))
    return rows


def _type(handset: Handset, key: str) -> None:
    digits = handset.settings["timer"]
    handset.set("timer", digits[:-1] if key == "del" else (digits + key).lstrip("0")[:6])


def _stopwatch(handset: Handset) -> list[Line]:
    since, total = handset.settings["stopwatch since"], _passed(handset)
    rows: list[Line] = [ui.text_row(f"{total // 60:02d} {total % 60:02d} 00")]
    if since:
        rows.append((ui.icon("Lap", lambda handset: None), ui.icon("Pause", _pause)))
    else:
        rows.append(ui.icon("Start", _run))
    return rows


def _passed(handset: Handset) -> int:
    since = handset.settings["stopwatch since"]
    running = handset.now - int(since) if since else 0
    return int(handset.settings["stopwatch passed"]) + running


def _run(handset: Handset) -> None:
    handset.set("stopwatch since", str(handset.now))


def _pause(handset: Handset) -> None:
    handset.set("stopwatch passed", str(_passed(handset)))
    handset.set("stopwatch since", "")


CLOCK = AppSpec(
    "clock", "com.google.android.deskclock", "com.android.deskclock.DeskClock", _clock,
    settings={"timer": "", "stopwatch since": "", "stopwatch passed": "0"},
)  # fmt: skip


# -- apps that create files ------------------------------------------------------------------------

RECORDS = f"{SHARED}/Android/data/com.dimowner.audiorecorder/files/Music/records"
_PLACES = ("Pictures", "Download", "DCIM")


def _camera(handset: Handset, screen: Screen) -> Page:
    film = screen.kind == "video"
    modes = ui.tabs({"Camera": "list", "Video": "video"}, screen.kind)
    rows: list[Line] = [ui.image("Viewfinder"), *_running(handset)]
    shutter = ui.icon("Shutter", _start if film else _photo)
    if "since" in handset.draft:
        shutter = ui.icon("Stop", _stop)
    return Page(title="Video" if film else "Camera", rows=rows, bottom=[shutter, modes])


def _stamp(handset: Handset) -> str:
    return f"{handset.when():%Y%m%d_%H%M%S}"


def _photo(handset: Handset) -> str:
    handset.files.write(f"{SHARED}/Pictures/IMG_{_stamp(handset)}.jpg", _stamp(handset).encode())
    return "Photo saved"


def _start(handset: Handset) -> None:
    handset.draft = {"since": str(handset.now)}


def _running(handset: Handset) -> list[Line]:
    """Seconds since the recording began."""
    since = handset.draft.get("since")
    return [ui.text_row(f"00:{handset.now - int(since):02d}")] if since else []


def _stop(handset: Handset) -> str:
    handset.draft = {}
    handset.files.write(f"{SHARED}/Movies/VID_{_stamp(handset)}.mp4", _stamp(handset).encode())
    return "Video saved"


def _recorder(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "save":
        typed = ui.field(handset, "Record name", "name")
        return Page(title="Save record", rows=[typed, ui.answers(_save_record, "Save")])
    if running := _running(handset):
        stop = ui.icon("Stop recording", _end_record)
        return Page(title="Recording", rows=running, bottom=[stop])
    names = map(name, handset.files.children(RECORDS))
    start = ui.icon("Start recording", _start)
    records = [ui.heading("Records"), *map(ui.text_row, names)]
    return Page(title="Audio Recorder", rows=records, bottom=[start])


def _end_record(handset: Handset) -> None:
    handset.draft = {}
    number = len(handset.files.children(RECORDS)) + 1
    handset.open("save", draft={"name": f"Record-{number}"})


def _save_record(handset: Handset) -> str:
    handset.files.make(RECORDS)
    return _save(handset, RECORDS, "m4a", "Record saved")


def _draw(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "save":
        rows: list[Line] = [
            ui.field(handset, "Filename", "name"),
            ui.heading("Folder"),
            *ui.options(handset, "folder", _PLACES, _PLACES[0]),
            ui.heading("Extension"),
            *ui.options(handset, "suffix", ("png", "svg", "jpg"), "png"),
            ui.answers(_save_drawing),
        ]
        return Page(title="Save as", rows=rows)
    save = ui.icon("Save", ui.go("save"))
    return Page(title="Simple Draw", rows=[ui.image("Canvas")], top=[save])


def _save_drawing(handset: Handset) -> str:
    folder = f"{SHARED}/{handset.draft.get('folder', _PLACES[0])}"
    suffix = handset.draft.get("suffix", "png")
    return _save(handset, folder, suffix, "File saved successfully")


def _save(handset: Handset, folder: str, suffix: str, toast: str) -> str:
    """Write a file under the typed name and leave the form."""
    typed = ui.typed_file_name(handset)
    if not typed:
        return "Invalid name"
    handset.files.write(f"{folder}/{typed}.{suffix}", _stamp(handset).encode())
    handset.back()
    return toast


CAMERA = AppSpec(
    name="camera", package="com.android.camera2", activity="com.android.camera.CameraLauncher",
    build=_camera,
)  # fmt: skip
RECORDER = AppSpec(
    "audio recorder", "com.dimowner.audiorecorder",
    "com.dimowner.audiorecorder.app.welcome.WelcomeActivity", _recorder,
    folders=(RECORDS,),
)  # fmt: skip
DRAW = AppSpec(
    "simple draw pro", "com.simplemobiletools.draw.pro",
    "com.simplemobiletools.draw.pro.activities.MainActivity", _draw,
)  # fmt: skip
