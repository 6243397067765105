"""Calendar: events with a day and a time."""

from __future__ import annotations

from swarm_ui.environments.phone.app import App
from swarm_ui.environments.phone.device import Device
from swarm_ui.environments.phone.draw import Draw
from swarm_ui.environments.phone.records import record_screen
from swarm_ui.environments.phone.schema import Field, Table
from swarm_ui.environments.phone.screen import Screen, Widget

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
