"""Music: playlists, and the modes of the player. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App, Setting
from swarm_ui.environments.phone.apps.record_screens import record_screen, setting_switch
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler

ROOT = Screen("music")
PLAYER = Screen("music", "player")
MODES = ("shuffle", "repeat", "equalizer")
PLAYLIST = Table(
    name="playlist",
    app="music",
    fields=(
        Field("playlist", sample=Sampler.title),
        Field("song", sample=Sampler.phrase),
        Field("offline", "switch", default="off"),
    ),
    trail=(ROOT,),
    add="create playlist",
    save="finish",
    edit="rename",
    delete="erase",
    confirm="erase",
)


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "player":
        return [setting_switch(device, mode) for mode in MODES]
    shown = record_screen(device, PLAYLIST, screen)
    if screen == ROOT:
        shown.append(Widget("tab", "player", effect=Go(PLAYER)))
    return shown


MUSIC = App(
    name="music",
    widgets=widgets,
    tables=(PLAYLIST,),
    settings={mode: Setting((ROOT, PLAYER)) for mode in MODES},
)
