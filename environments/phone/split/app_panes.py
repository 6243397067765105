"""The pane of an app that an agent may read but not operate: all records with their values."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.observation import Element


def pane(device: Device, app: str, first: int) -> list[Element]:
    """The elements of an app's pane: its name, then one element for each record or setting.

    Args:
        device: the device, whose records are shown as they are now.
        app: name of the app.
        first: index of the first element.
    """
    found = [Element(index=first, role="heading", text=app, clickable=False, pane=app)]
    for text, value in _lines(device, app):
        found.append(
            Element(
                index=first + len(found), role="item", text=text, value=value, clickable=False,
                pane=app,
            )
        )  # fmt: skip
    return found


def with_pane(elements: tuple[Element, ...], app: str) -> tuple[Element, ...]:
    """The elements of the screen that is operated, as a pane."""
    return tuple(msgspec.structs.replace(element, pane=app) for element in elements)


def _lines(device: Device, app: str) -> Iterator[tuple[str, str]]:
    """Title and values of every record, then name and value of every setting."""
    for table in APPS[app].tables:
        for row in device.tables[table.name].values():
            yield row[table.title], _values(table, row)
    for key in APPS[app].settings:
        yield key, device.settings[key]


def _values(table: Table, row: Row) -> str:
    return ", ".join(f"{field.name} {row[field.name]}" for field in table.fields[1:])
