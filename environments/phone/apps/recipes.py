"""Recipes: dishes with a cooking time. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.record_screens import record_screen
from swarm_ui.environments.phone.ui.screen import Screen, Widget

RECIPE = Table(
    name="recipe",
    app="recipes",
    fields=(
        Field("dish"),
        Field("duration"),
        Field("servings"),
        Field("starred", "switch", default="off"),
    ),
    trail=(Screen("recipes"),),
    add="write recipe",
    save="keep",
    edit="change",
    delete="discard",
    confirm="discard",
)


def build(device: Device, screen: Screen) -> list[Widget]:
    return record_screen(device, RECIPE, screen)


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {
        "dish": draw.phrase(2),
        "duration": draw.count(),
        "servings": str(1 + int(draw.rng.random() * 8)),
        "starred": draw.pick(("off", "off", "on")),
    }


RECIPES = App(name="recipes", build=build, record=record, tables=(RECIPE,))
