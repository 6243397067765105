"""Contacts: people with a phone number and an address."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler

CONTACT = Table(
    name="contact",
    app="contacts",
    fields=(
        Field("name", sample=Sampler.full_name),
        Field("phone", sample=Sampler.phone),
        Field("email", sample=Sampler.email),
        Field("favorite", "switch", default="off"),
    ),
    trail=(Screen("contacts"),),
)
CONTACTS = App(name="contacts", tables=(CONTACT,))
