"""Notes: titles with a body."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler

NOTE = Table(
    name="note",
    app="notes",
    fields=(
        Field("title", sample=Sampler.title),
        Field("body", sample=Sampler.phrase),
        Field("pinned", "switch", default="off"),
    ),
    trail=(Screen("notes"),),
    add="new",
)
NOTES = App(name="notes", tables=(NOTE,))
