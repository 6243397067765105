"""Tasks in the test apps: nothing of them is in training."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.music import MODES, PLAYLIST
from swarm_ui.environments.phone.apps.recipes import RECIPE
from swarm_ui.environments.phone.tasks.task_kinds import (
    create,
    delete,
    edit,
    flip,
    missing,
    read,
    switch,
)
from swarm_ui.environments.phone.tasks.template import Template

_RECIPES, _MUSIC = ("recipes",), ("music",)
TEMPLATES = (
    Template(
        name="recipes-write",
        apps=_RECIPES,
        split="new_apps",
        steps=5,
        goals=(
            "in recipes write a recipe with dish {dish} and duration {duration}",
            "write a new recipe for the dish {dish} with duration {duration}",
        ),
        make=create(RECIPE, "dish", "duration"),
        tags=("form",),
    ),
    Template(
        name="recipes-discard",
        apps=_RECIPES,
        split="new_apps",
        steps=4,
        goals=("discard the recipe {dish}", "discard {dish} from recipes"),
        make=delete(RECIPE),
        tags=("delete",),
    ),
    Template(
        name="recipes-discard-missing",
        apps=_RECIPES,
        split="new_apps",
        steps=1,
        goals=("discard the recipe {dish}", "discard {dish} from recipes"),
        make=missing(RECIPE),
        tags=("infeasible",),
    ),
    Template(
        name="recipes-star",
        apps=_RECIPES,
        split="new_apps",
        steps=3,
        goals=(
            "turn {state} starred for the recipe {dish}",
            "switch starred {state} for {dish} in recipes",
        ),
        make=flip(RECIPE),
        tags=("toggle",),
    ),
    Template(
        name="recipes-change",
        apps=_RECIPES,
        split="new_apps",
        steps=5,
        goals=(
            "change the recipe {dish} and set duration to {duration}",
            "change the duration of {dish} in recipes to {duration}",
        ),
        make=edit(RECIPE, "duration"),
        tags=("edit",),
    ),
    Template(
        name="recipes-duration",
        apps=_RECIPES,
        split="new_apps",
        steps=3,
        goals=(
            "what is the duration of the recipe {dish}",
            "answer with the duration of {dish} in recipes",
        ),
        make=read(RECIPE, "duration"),
        tags=("answer",),
    ),
    Template(
        name="music-create",
        apps=_MUSIC,
        split="new_apps",
        steps=5,
        goals=(
            "in music create a playlist with playlist {playlist} and song {song}",
            "create a playlist {playlist} in music with song {song}",
        ),
        make=create(PLAYLIST, "playlist", "song"),
        tags=("form",),
    ),
    Template(
        name="music-erase",
        apps=_MUSIC,
        split="new_apps",
        steps=4,
        goals=("erase the music playlist {playlist}", "erase {playlist} from music"),
        make=delete(PLAYLIST),
        tags=("delete",),
    ),
    Template(
        name="music-player",
        apps=_MUSIC,
        split="new_apps",
        steps=3,
        goals=(
            "turn {state} {switch} in the music player",
            "switch {switch} {state} in the player of music",
        ),
        make=switch(MODES),
        tags=("toggle",),
    ),
)
