"""Broccoli: the phone's recipes with all fields of the app's database."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.record_list import FormField, RecordListApp

COOKBOOK = db.single_table(
    "/data/data/com.flauschcode.broccoli/databases/broccoli",
    "recipes", "recipeId", "recipe",
    (
        db.text("title", "dish"), db.text("description"), db.text("servings"),
        db.text("preparationTime", "duration"), db.text("source"), db.text("ingredients"),
        db.text("directions"), db.flag("favorite", "starred"), db.text("imageName", "image"),
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
RECIPES = LIST.spec("com.flauschcode.broccoli", "com.flauschcode.broccoli.MainActivity", COOKBOOK)
