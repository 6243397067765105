"""Apps that find records by search: the browser with its pages, and maps with its places.

Pages and places are part of the episode. The browser works only while wifi is on. Maps is a test
app: no training template opens it.
"""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App, copyable, switch
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Download, Go, Search
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.observation import Role

BROWSER_ROOT, MAPS_ROOT = Screen("browser"), Screen("maps")
PAGE = Table(
    name="page",
    app="browser",
    fields=(
        *(Field(name) for name in ("address", "name", "phone", "price", "opens")),
        Field("bookmarked", "switch", default="off"),
    ),
    trail=(BROWSER_ROOT,),
)
"""The table of web pages. A page also has a ``file`` to download, and its ``size``."""
PLACE = Table(
    name="place",
    app="maps",
    fields=(
        *(Field(name) for name in ("place", "street", "phone", "closes")),
        Field("saved", "switch", default="off"),
    ),
    trail=(MAPS_ROOT,),
)
"""The table of places. A place also has the minutes that the way to it takes by ``foot`` and by
``car``."""
_MAP = Widget("image", "", description="map", zone="hero")


def route_path(key: int) -> Path:
    """The screens that lead to the route to a place."""
    return (*PLACE.path("detail", key), Screen("maps", "route", "place", key))


def _search(device: Device, table: Table) -> Widget:
    """The field whose text is searched among the titles."""
    title = table.title
    search = Search(table.app, table.name, title)
    return Widget("field", title, device.draft.get(title, ""), field=title, submit=search)


def _kept(device: Device, table: Table, role: Role, value: str | None) -> list[Widget]:
    """The records whose switch is on."""
    field = table.switches[0].name
    return [
        Widget(role, row[table.title], value, effect=Go(table.screen("detail", key)))
        for key, row in device.tables[table.name].items()
        if row[field] == "on"
    ]


def _browser(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "missing":
        return [Widget("label", "page not found")]
    if screen.row:
        return _page(device, screen.row)
    bookmarks = _kept(device, PAGE, "link", None)
    heading = Widget("label", "bookmarks" if bookmarks else "no bookmarks")
    return [_search(device, PAGE), heading, *bookmarks]


def _page(device: Device, key: int) -> list[Widget]:
    pages = device.tables["page"]
    row = pages[key]
    shown = copyable({name: row[name] for name in ("name", "phone", "price", "opens")})
    keys = list(pages)
    after = keys[(keys.index(key) + 1) % len(keys)]
    if after != key:
        go = Go(PAGE.screen("detail", after))
        shown.append(Widget("link", f"see also {pages[after]['address']}", effect=go))
    download = Widget("button", f"download {row['file']}", effect=Download(key))
    return [*shown, switch(PAGE, key, row, "bookmarked"), download]


def _maps(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "missing":
        return [Widget("label", "no results")]
    if not screen.row:
        return [_search(device, PLACE), _MAP, *_kept(device, PLACE, "item", "saved")]
    key, row = screen.row, device.tables["place"][screen.row]
    if screen.kind == "route":
        ways = {f"by {way}": f"{row[way]} min" for way in ("foot", "car")}
        return [_MAP, *copyable(ways)]
    shown = copyable({field.name: row[field.name] for field in PLACE.form})
    directions = Widget("button", "directions", effect=Go(route_path(key)[-1]))
    return [*shown, switch(PLACE, key, row, "saved"), directions]


def _random_page(sampler: Sampler) -> dict[str, str]:
    return {
        "address": sampler.address(),
        "name": sampler.phrase(2),
        "phone": sampler.phone(),
        "price": sampler.amount(),
        "opens": sampler.time(),
        "file": sampler.title(),
        "size": sampler.number(),
        "bookmarked": sampler.pick(("off", "off", "on")),
    }


def _random_place(sampler: Sampler) -> dict[str, str]:
    return {
        "place": sampler.phrase(2),
        "street": sampler.street(),
        "phone": sampler.phone(),
        "closes": sampler.time(),
        "foot": sampler.number(),
        "car": sampler.number(),
        "saved": sampler.pick(("off", "off", "on")),
    }


BROWSER = App(
    name="browser",
    widgets=_browser,
    sample=_random_page,
    tables=(PAGE,),
    needs=dict.fromkeys(("list", "detail", "missing"), "wifi"),
)
MAPS = App(
    name="maps", widgets=_maps, sample=_random_place, tables=(PLACE,), needs={"route": "location"}
)
