"""Notes: titles with a body."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

NOTE = Table(
    name="note",
    app="notes",
    fields=(Field("title"), Field("body"), Field("pinned", "switch", default="off")),
    trail=(Screen("notes"),),
    add="new",
)


def build(device: Device, screen: Screen) -> list[Widget]:
    return record_screen(device, NOTE, screen)


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {
        "title": draw.title(),
        "body": draw.phrase(2),
        "pinned": draw.pick(("off", "off", "on")),
    }


NOTES = App(name="notes", build=build, record=record, tables=(NOTE,))
