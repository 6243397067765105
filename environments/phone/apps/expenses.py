"""Expenses: what was bought, for how much, of which category."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

CATEGORIES = ("food", "travel", "home", "fun")
EXPENSE = Table(
    name="expense",
    app="expenses",
    fields=(Field("item"), Field("amount"), Field("category", "choice", CATEGORIES)),
    trail=(Screen("expenses"),),
    add="add expense",
)


def build(device: Device, screen: Screen) -> list[Widget]:
    return record_screen(device, EXPENSE, screen)


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {"item": draw.noun(), "amount": draw.amount(), "category": draw.pick(CATEGORIES)}


EXPENSES = App(name="expenses", build=build, record=record, tables=(EXPENSE,))
