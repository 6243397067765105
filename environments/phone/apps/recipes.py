"""Recipes: dishes with a cooking time. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler


def _servings(sampler: Sampler) -> str:
    return str(1 + int(sampler.rng.random() * 8))


RECIPE = Table(
    name="recipe",
    app="recipes",
    fields=(
        Field("dish", sample=Sampler.phrase),
        Field("duration", sample=Sampler.number),
        Field("servings", sample=_servings),
        Field("starred", "switch", default="off"),
    ),
    trail=(Screen("recipes"),),
    add="write recipe",
    save="keep",
    edit="change",
    delete="discard",
    confirm="discard",
)
RECIPES = App(name="recipes", tables=(RECIPE,))
