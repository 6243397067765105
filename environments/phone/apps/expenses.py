"""The expenses app: items, amounts and categories."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler

EXPENSE = Table(
    name="expense",
    app="expenses",
    fields=(
        Field("item", sample=Sampler.noun),
        Field("amount", sample=Sampler.amount),
        Field("category", "choice", ("food", "travel", "home", "fun")),
    ),
    trail=(Screen("expenses"),),
    add="add expense",
)
EXPENSES = App(name="expenses", tables=(EXPENSE,))
