"""Calendar: events with a day and a time."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday")
EVENT = Table(
    name="event",
    app="calendar",
    fields=(
        Field("title", sample=Sampler.phrase),
        Field("time", sample=Sampler.time),
        Field("place", sample=Sampler.noun),
        Field("day", "choice", DAYS),
    ),
    trail=(Screen("calendar"),),
    add="new event",
)
CALENDAR = App(name="calendar", tables=(EVENT,))
