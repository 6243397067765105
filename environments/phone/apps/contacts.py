"""Contacts: people with a phone number and an address."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

CONTACT = Table(
    name="contact",
    app="contacts",
    fields=(
        Field("name"),
        Field("phone"),
        Field("email"),
        Field("favorite", "switch", default="off"),
    ),
    trail=(Screen("contacts"),),
    add="add",
)


def build(device: Device, screen: Screen) -> list[Widget]:
    return record_screen(device, CONTACT, screen)


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {
        "name": draw.person(),
        "phone": draw.phone(),
        "email": draw.email(),
        "favorite": draw.pick(("off", "off", "on")),
    }


CONTACTS = App(name="contacts", build=build, record=record, tables=(CONTACT,))
