"""Browser: pages with facts, a link and a file to download. Its first page lists the bookmarks.

The pages are part of the episode. The browser works only while wifi is on.
"""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.record_screens import copyable, switch
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go
from swarm_ui.environments.phone.device.full_effects import Download, Search
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler

ROOT = Screen("browser")
PAGE = Table(
    name="page",
    app="browser",
    fields=(
        Field("address"),
        Field("name"),
        Field("phone"),
        Field("price"),
        Field("opens"),
        Field("bookmarked", "switch", default="off"),
    ),
    trail=(ROOT,),
)
"""A page also has a ``file`` of a ``size`` to download."""


def page_path(key: int) -> Path:
    return PAGE.path("detail", key)


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "missing":
        return [Widget("label", "page not found")]
    pages = device.tables["page"]
    if screen.row:
        return _page(device, screen.row)
    address = device.draft.get("address", "")
    search = Search("browser", "page", "address")
    bookmarks = [
        Widget("link", row["address"], effect=Go(PAGE.screen("detail", key)))
        for key, row in pages.items()
        if row["bookmarked"] == "on"
    ]
    return [
        Widget("field", "address", address, field="address", submit=search),
        Widget("label", "bookmarks" if bookmarks else "no bookmarks"),
        *bookmarks,
    ]


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


def sample(sampler: Sampler) -> dict[str, str]:
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


BROWSER = App(
    name="browser",
    widgets=widgets,
    sample=sample,
    tables=(PAGE,),
    needs={"list": "wifi", "detail": "wifi", "missing": "wifi"},
)
