"""Clock: alarms, and timers behind a tab."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

ROOT = Screen("clock")
ALARM = Table(
    name="alarm",
    app="clock",
    fields=(Field("time"), Field("label"), Field("active", "switch", default="on")),
    trail=(ROOT,),
    add="new alarm",
)
TIMERS = Screen("clock", "list", "timer")
TIMER = Table(
    name="timer",
    app="clock",
    fields=(Field("minutes"), Field("purpose")),
    trail=(ROOT, TIMERS),
    add="new timer",
    save="start",
)


def build(device: Device, screen: Screen) -> list[Widget]:
    if screen.of == "timer":
        return record_screen(device, TIMER, screen)
    widgets = record_screen(device, ALARM, screen)
    if screen == ROOT:
        widgets.append(Widget("tab", "timers", effect=Go(TIMERS)))
    return widgets


def record(draw: Draw, table: Table) -> dict[str, str]:
    if table is TIMER:
        return {"minutes": draw.count(), "purpose": draw.noun()}
    return {"time": draw.time(), "label": draw.noun(), "active": draw.pick(("off", "on"))}


CLOCK = App(name="clock", build=build, record=record, tables=(ALARM, TIMER))
