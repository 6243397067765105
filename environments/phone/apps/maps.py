"""Maps: places, and the way to them. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Copy, Flip, Go
from swarm_ui.environments.phone.device.full_effects import Search
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen, Widget
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
"""Beside these fields a place has the minutes to it by ``foot`` and by ``car``."""


def route_path(key: int) -> Path:
    """Screens to the way to a place."""
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
        return [chart, *(Widget("item", n, v, effect=Copy(n, v)) for n, v in ways.items())]
    shown = [
        Widget("item", f.name, row[f.name], effect=Copy(f.name, row[f.name])) for f in PLACE.form
    ]
    saved = Widget("switch", "saved", None, row["saved"] == "on", Flip(PLACE, key, "saved"))
    return [*shown, saved, Widget("button", "directions", effect=Go(route_path(key)[-1]))]


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
