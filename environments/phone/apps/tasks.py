"""Tasks: a list of tasks with check boxes."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler

TASK = Table(
    name="task",
    app="tasks",
    fields=(
        Field("task", sample=Sampler.chore),
        Field("done", "switch", default="off"),
    ),
    trail=(Screen("tasks"),),
    add="new task",
    save="create",
    edit="",
    delete="remove",
    confirm="remove",
    checklist=True,
)
TASKS = App(name="tasks", tables=(TASK,))
