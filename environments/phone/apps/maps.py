"""Maps: places and routes to them. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.record_screens import copyable, switch
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go
from swarm_ui.environments.phone.device.full_effects import Search
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler

ROOT = Screen("maps")
PLACE = Table(
    name="place",
    app="maps",
    fields=(
        Field("place"),
        Field("street"),
        Field("phone"),
        Field("closes"),
        Field("saved", "switch", default="off"),
    ),
    trail=(ROOT,),
)
"""A place also has the minutes to it by ``foot`` and by ``car``."""


def route_path(key: int) -> Path:
    """Screens to the route to a place."""
    return (*PLACE.path("detail", key), Screen("maps", "route", "place", key))


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "missing":
        return [Widget("label", "no results")]
    if not screen.row:
        return _first(device)
    key, row = screen.row, device.tables["place"][screen.row]
    chart = Widget("image", "", description="map", zone="hero")
    if screen.kind == "route":
        ways = {"by foot": f"{row['foot']} min", "by car": f"{row['car']} min"}
        return [chart, *copyable(ways)]
    shown = copyable({field.name: row[field.name] for field in PLACE.form})
    directions = Widget("button", "directions", effect=Go(route_path(key)[-1]))
    return [*shown, switch(PLACE, key, row, "saved"), directions]


def _first(device: Device) -> list[Widget]:
    wanted = device.draft.get("place", "")
    search = Search("maps", "place", "place")
    saved = [
        Widget("item", row["place"], "saved", effect=Go(PLACE.screen("detail", key)))
        for key, row in device.tables["place"].items()
        if row["saved"] == "on"
    ]
    return [
        Widget("field", "place", wanted, field="place", submit=search),
        Widget("image", "", description="map", zone="hero"),
        *saved,
    ]


def sample(sampler: Sampler) -> dict[str, str]:
    return {
        "place": sampler.phrase(2),
        "street": sampler.street(),
        "phone": sampler.phone(),
        "closes": sampler.time(),
        "foot": sampler.number(),
        "car": sampler.number(),
        "saved": sampler.pick(("off", "off", "on")),
    }


MAPS = App(
    name="maps", widgets=widgets, sample=sample, tables=(PLACE,), needs={"route": "location"}
)
