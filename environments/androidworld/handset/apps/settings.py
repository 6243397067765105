"""Settings: the phone's own switches, and the brightness. Clipper: what the clipboard holds."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.handset import Control, Edition, Handset, Page
from swarm_ui.environments.androidworld.handset.screen.widgets import go, item, told
from swarm_ui.environments.phone.apps import settings as phone
from swarm_ui.environments.phone.device.effects import SetSetting
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget

BRIGHTNESS = Screen("settings", "brightness")
LEVELS = {"0%": "1", "25%": "64", "50%": "128", "75%": "191", "100%": "255"}


def _settings(handset: Handset, screen: Screen) -> Page:
    if screen == BRIGHTNESS:
        now = handset.settings["brightness"]
        rows: list[Widget] = [
            Control("radio", share, None, value == now, SetSetting("brightness", value))
            for share, value in LEVELS.items()
        ]
        slide = partial(Control, "text", "Brightness", now, slider=_slide)
        return Page(title="Brightness level", rows=[slide(), *rows])
    widgets: list[Widget] = list(phone.SETTINGS.build(handset, screen))
    if screen.kind == "category" and screen.of == "display":
        widgets.append(item("brightness level", _share(handset), go(BRIGHTNESS)))
    return Page(title=screen.of or "settings", rows=widgets)


def _share(handset: Handset) -> str:
    return f"{round((int(handset.settings['brightness']) - 1) / 254 * 100)}%"


def _slide(handset: Handset, share: float) -> None:
    handset.set("brightness", str(1 + round(min(1.0, max(0.0, share)) * 254)))


def _clipper(handset: Handset, screen: Screen) -> Page:
    return Page(title="Clipper", rows=[told("Clipboard", handset.clipboard)])


SETTINGS = Edition(
    app="settings",
    package="com.android.settings",
    activity="com.android.settings.Settings",
    build=_settings,
    settings={key: place.choices[0] for key, place in phone.SETTINGS.settings.items()}
    | {"brightness": "128"},
)
CLIPPER = Edition(
    app="clipper", package="ca.zgrs.clipper", activity="ca.zgrs.clipper.Main", build=_clipper
)
