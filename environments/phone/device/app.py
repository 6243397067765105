"""What an app is: a name, the records it keeps, and a function from device and address to widgets.

To add an app, write one file in ``apps/`` that ends in an ``App``, and list it in
``apps/__init__.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.screen import Path, Screen, Widget


class Setting(msgspec.Struct, frozen=True):
    """A switch or choice of the device, and the screens that lead to it."""

    path: Path
    choices: tuple[str, ...] = ("off", "on")


class App(msgspec.Struct, frozen=True, kw_only=True):
    """One app."""

    name: str
    build: Callable[[Device, Screen], list[Widget]]
    """The widgets of a screen, in the order a person would see them."""
    record: Callable[[Draw, Table], dict[str, str]]
    """A random record of one of its tables."""
    tables: tuple[Table, ...] = ()
    settings: Mapping[str, Setting] = {}
    needs: Mapping[str, str] = {}
    """Kind of screen -> permission it asks for, or ``"wifi"`` if it works online only."""
    last: Callable[[Device, Screen], int] | None = None
    """Last page of screens that scroll but are not the list of a table."""

    def fill(self, device: Device, draw: Draw, least: int, most: int) -> None:
        """Store random records and settings, as if the phone had been used for a while."""
        for table in self.tables:
            rows = {}
            for _ in range(least + int(draw.rng.random() * (most - least + 1))):
                rows[device.next_row] = self.record(draw, table)
                device.next_row += 1
            device.tables = {**device.tables, table.name: rows}
        if self.settings:
            chosen = {key: draw.pick(where.choices) for key, where in self.settings.items()}
            device.settings = {**device.settings, **chosen}
