"""Clock: alarms, and timers behind a tab."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.record_screens import record_screen
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler


def _active(sampler: Sampler) -> str:
    return sampler.pick(("off", "on"))


ROOT = Screen("clock")
ALARM = Table(
    name="alarm",
    app="clock",
    fields=(
        Field("time", sample=Sampler.time),
        Field("label", sample=Sampler.noun),
        Field("active", "switch", default="on", sample=_active),
    ),
    trail=(ROOT,),
    add="new alarm",
)
TIMERS = Screen("clock", "list", "timer")
TIMER = Table(
    name="timer",
    app="clock",
    fields=(
        Field("minutes", sample=Sampler.number),
        Field("purpose", sample=Sampler.noun),
    ),
    trail=(ROOT, TIMERS),
    add="new timer",
    save="start",
)


def widgets(device: Device, screen: Screen) -> list[Widget]:
    shown = record_screen(device, TIMER if screen.of == "timer" else ALARM, screen)
    if screen == ROOT:
        shown.append(Widget("tab", "timers", effect=Go(TIMERS)))
    return shown


CLOCK = App(name="clock", widgets=widgets, tables=(ALARM, TIMER))
