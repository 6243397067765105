"""The definition of an app: its name, its tables of records, and the widgets of its screens.

To add an app, write one file in ``apps/`` that defines an :class:`App`, and list it in
``apps/__init__.py``. An app that only stores records needs no code: its tables are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from swarm_ui.environments.phone.apps.record_screens import record_screen
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.parameters import Sampler


class Setting(msgspec.Struct, frozen=True):
    """A switch or choice of the device, and the screens that lead to it."""

    path: Path
    choices: tuple[str, ...] = ("off", "on")


class App(msgspec.Struct, frozen=True, kw_only=True):
    """One app."""

    name: str
    tables: tuple[Table, ...] = ()
    """The records it stores; the first table is the one on its first screen."""
    widgets: Callable[[Device, Screen], list[Widget]] | None = None
    """Builds the app's screens; ``None``: the screens of its tables."""
    sample: Callable[[Sampler], dict[str, str]] | None = None
    """Draws a random record; ``None``: a random value for each field."""
    settings: Mapping[str, Setting] = {}
    needs: Mapping[str, str] = {}
    """Kind of screen -> permission it asks for, or ``"wifi"`` if it works online only."""
    last: Callable[[Device, Screen], int] | None = None
    """Last page of scrollable screens that do not list a table."""

    def build(self, device: Device, screen: Screen) -> list[Widget]:
        """The widgets of a screen, in reading order."""
        if self.widgets is not None:
            return self.widgets(device, screen)
        table = next((t for t in self.tables if t.name == screen.of), self.tables[0])
        return record_screen(device, table, screen)

    def record(self, sampler: Sampler, table: Table) -> dict[str, str]:
        """A random record of one of its tables."""
        if self.sample is not None:
            return self.sample(sampler)
        return {field.name: field.random_value(sampler) for field in table.fields}

    def fill(self, device: Device, sampler: Sampler, least: int, most: int) -> None:
        """Store random settings and ``least`` to ``most`` random records per table."""
        for table in self.tables:
            rows = {}
            for _ in range(least + int(sampler.rng.random() * (most - least + 1))):
                rows[device.next_row] = self.record(sampler, table)
                device.next_row += 1
            device.tables = {**device.tables, table.name: rows}
        if self.settings:
            chosen = {key: sampler.pick(where.choices) for key, where in self.settings.items()}
            device.settings = {**device.settings, **chosen}
