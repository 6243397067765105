"""Broccoli: the phone's recipes with all that its own database keeps of them."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.apps.record_keeper import Keeper, Part
from swarm_ui.environments.androidworld.handset.databases import Database, SqlTable, flag, text
from swarm_ui.environments.androidworld.handset.handset import Edition

COOKBOOK = Database(
    "/data/data/com.flauschcode.broccoli/databases/broccoli",
    (
        SqlTable(
            name="recipes",
            key="recipeId",
            of="recipe",
            columns=(
                text("title", "dish"), text("description"), text("servings"),
                text("preparationTime", "duration"), text("source"), text("ingredients"),
                text("directions"), flag("favorite", "starred"), text("imageName", "image"),
            ),
        ),
    ),
)  # fmt: skip
KEEPER = Keeper(
    app="broccoli",
    title="Broccoli",
    table="recipe",
    parts=(
        Part("dish", "Title"),
        Part("description", "Description"),
        Part("source", "Source"),
        Part("servings", "Servings"),
        Part("duration", "Preparation time"),
        Part("ingredients", "Ingredients"),
        Part("directions", "Directions"),
    ),
    add="New recipe",
    row=lambda record: (record["dish"], record.get("description", "")),
    order=lambda key, record: record["dish"].casefold(),
    extra=lambda handset: {"starred": "off", "image": ""},
)
RECIPES = Edition(
    app="broccoli",
    package="com.flauschcode.broccoli",
    activity="com.flauschcode.broccoli.MainActivity",
    build=KEEPER.page,
    databases=(COOKBOOK,),
)
