"""Tasks in the test apps: nothing of them is in training."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.record_apps import MODES, PLAYLIST, RECIPE
from swarm_ui.environments.phone.tasks.task_kinds import (
    create,
    delete,
    edit,
    missing,
    read,
    switch,
    toggle,
)

TEMPLATES = (
    create("recipes-write", "new_apps", RECIPE, "dish", "duration").phrased(
        "in recipes write a recipe with dish {dish} and duration {duration}",
        "write a new recipe for the dish {dish} with duration {duration}",
    ),
    delete("recipes-discard", "new_apps", RECIPE),
    missing("recipes-discard-missing", "new_apps", RECIPE),
    toggle("recipes-star", "new_apps", RECIPE),
    edit("recipes-change", "new_apps", RECIPE, "duration"),
    read("recipes-duration", "new_apps", RECIPE, "duration"),
    create("music-create", "new_apps", PLAYLIST, "playlist", "song").phrased(
        "in music create a playlist with playlist {playlist} and song {song}",
        "create a playlist {playlist} in music with song {song}",
    ),
    delete("music-erase", "new_apps", PLAYLIST).phrased(
        "erase the music playlist {playlist}", "erase {playlist} from music"
    ),
    switch("music-player", "new_apps", MODES).phrased(
        "turn {state} {switch} in the music player",
        "switch {switch} {state} in the player of music",
    ),
)
