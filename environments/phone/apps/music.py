"""Music: playlists, and how they are played. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App, Setting
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import FlipSetting, Go
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

ROOT = Screen("music")
PLAYER = Screen("music", "player")
MODES = ("shuffle", "repeat", "equalizer")
PLAYLIST = Table(
    name="playlist",
    app="music",
    fields=(Field("playlist"), Field("song"), Field("offline", "switch", default="off")),
    trail=(ROOT,),
    add="create playlist",
    save="finish",
    edit="rename",
    delete="erase",
    confirm="erase",
)


def build(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "player":
        return [
            Widget("switch", mode, None, device.settings[mode] == "on", FlipSetting(mode))
            for mode in MODES
        ]
    widgets = record_screen(device, PLAYLIST, screen)
    if screen == ROOT:
        widgets.append(Widget("tab", "player", effect=Go(PLAYER)))
    return widgets


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {
        "playlist": draw.title(),
        "song": draw.phrase(2),
        "offline": draw.pick(("off", "off", "on")),
    }


MUSIC = App(
    name="music",
    build=build,
    record=record,
    tables=(PLAYLIST,),
    settings={mode: Setting((ROOT, PLAYER)) for mode in MODES},
)
