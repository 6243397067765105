"""Tasks: a list to tick off."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

TASK = Table(
    name="task",
    app="tasks",
    fields=(Field("task"), Field("done", "switch", default="off")),
    trail=(Screen("tasks"),),
    add="new task",
    save="create",
    edit="",
    delete="remove",
    confirm="remove",
    checklist=True,
)


def build(device: Device, screen: Screen) -> list[Widget]:
    return record_screen(device, TASK, screen)


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {"task": draw.errand(), "done": draw.pick(("off", "off", "on"))}


TASKS = App(name="tasks", build=build, record=record, tables=(TASK,))
