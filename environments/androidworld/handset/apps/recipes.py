"""Broccoli: the phone's recipes with all fields of the app's database."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.apps.record_list import FormField, RecordListApp
from swarm_ui.environments.androidworld.handset.databases import Database, SqlTable, flag, text
from swarm_ui.environments.androidworld.handset.handset import AppSpec

COOKBOOK = Database(
    "/data/data/com.flauschcode.broccoli/databases/broccoli",
    (
        SqlTable(
            name="recipes",
            key="recipeId",
            phone_table="recipe",
            columns=(
                text("title", "dish"), text("description"), text("servings"),
                text("preparationTime", "duration"), text("source"), text("ingredients"),
                text("directions"), flag("favorite", "starred"), text("imageName", "image"),
            ),
        ),
    ),
)  # fmt: skip
LIST = RecordListApp(
    app="broccoli",
    title="Broccoli",
    table="recipe",
    fields=(
        FormField("dish", "Title"),
        FormField("description", "Description"),
        FormField("source", "Source"),
        FormField("servings", "Servings"),
        FormField("duration", "Preparation time"),
        FormField("ingredients", "Ingredients"),
        FormField("directions", "Directions"),
    ),
    add="New recipe",
    row=lambda record: (record["dish"], record.get("description", "")),
    sort_key=lambda key, record: record["dish"].casefold(),
    on_insert=lambda handset: {"starred": "off", "image": ""},
)
RECIPES = AppSpec(
    name="broccoli",
    package="com.flauschcode.broccoli",
    activity="com.flauschcode.broccoli.MainActivity",
    build=LIST.page,
    databases=(COOKBOOK,),
)
