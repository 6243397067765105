"""Calendar: events with a day and a time."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
EVENT = Table(
    name="event",
    app="calendar",
    fields=(Field("title"), Field("time"), Field("place"), Field("day", "choice", DAYS)),
    trail=(Screen("calendar"),),
    add="new event",
)


def build(device: Device, screen: Screen) -> list[Widget]:
    return record_screen(device, EVENT, screen)


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {
        "title": draw.phrase(2),
        "time": draw.time(),
        "place": draw.noun(),
        "day": draw.pick(DAYS),
    }


CALENDAR = App(name="calendar", build=build, record=record, tables=(EVENT,))
