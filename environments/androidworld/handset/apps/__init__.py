"""The apps of the handset: simplified versions of the apps that android_world tasks use."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.apps.calendar import CALENDAR
from swarm_ui.environments.androidworld.handset.apps.file_lists import FILES, GALLERY, MARKOR
from swarm_ui.environments.androidworld.handset.apps.messenger import CONTACTS, DIALER, MESSENGER
from swarm_ui.environments.androidworld.handset.apps.osmand import OSMAND
from swarm_ui.environments.androidworld.handset.apps.playlists import RETRO_MUSIC, VLC
from swarm_ui.environments.androidworld.handset.apps.records import (
    EXPENSE,
    JOPLIN,
    RECIPES,
    SPORTS,
    TASKS,
)
from swarm_ui.environments.androidworld.handset.apps.tools import (
    CAMERA,
    CLIPPER,
    CLOCK,
    DRAW,
    RECORDER,
    SETTINGS,
)
from swarm_ui.environments.androidworld.handset.handset import AppSpec

APPS: tuple[AppSpec, ...] = (
    SETTINGS, CONTACTS, DIALER, MESSENGER, CLOCK, CALENDAR, TASKS, MARKOR, FILES, GALLERY, CAMERA,
    RECORDER, DRAW, EXPENSE, RECIPES, CLIPPER, JOPLIN, SPORTS, RETRO_MUSIC, VLC, OSMAND,
)  # fmt: skip
