"""Settings shows the phone's settings and the brightness. Clipper shows the clipboard."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.handset import AppSpec, Control, Handset, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.apps import PHONE
from swarm_ui.environments.phone.effects import SetSetting
from swarm_ui.environments.phone.record_screens import app_screen
from swarm_ui.environments.phone.state import Screen, Widget

_SETTINGS = PHONE.apps["settings"]
BRIGHTNESS = Screen("settings", "brightness")
LEVELS = {"0%": "1", "25%": "64", "50%": "128", "75%": "191", "100%": "255"}


def _settings(handset: Handset, screen: Screen) -> Page:
    if screen == BRIGHTNESS:
        now = handset.settings["brightness"]
        rows: list[Widget] = [
            Control("radio", share, None, value == now, SetSetting("brightness", value))
            for share, value in LEVELS.items()
        ]
        slider = Control("text", "Brightness", now, slider=_slide)
        return Page(title="Brightness level", rows=[slider, *rows])
    widgets: list[Widget] = list(app_screen(_SETTINGS, handset, screen))
    if screen.kind == "category" and screen.of == "display":
        widgets.append(
            ui.item("brightness level", _share(handset), ui.open_screen("settings", "brightness"))
        )
    return Page(title=screen.of or "settings", rows=widgets)


def _share(handset: Handset) -> str:
    return f"{round((int(handset.settings['brightness']) - 1) / 254 * 100)}%"


def _slide(handset: Handset, share: float) -> None:
    handset.set("brightness", str(1 + round(min(1.0, max(0.0, share)) * 254)))


def _clipper(handset: Handset, screen: Screen) -> Page:
    return Page(title="Clipper", rows=[ui.text_row("Clipboard", handset.clipboard)])


SETTINGS = AppSpec(
    name="settings",
    package="com.android.settings",
    activity="com.android.settings.Settings",
    build=_settings,
    settings={key: place.choices[0] for key, place in _SETTINGS.settings.items()}
    | {"brightness": "128"},
)
CLIPPER = AppSpec(
    name="clipper", package="ca.zgrs.clipper", activity="ca.zgrs.clipper.Main", build=_clipper
)
