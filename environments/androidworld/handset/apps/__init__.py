"""The apps of the handset: simplified versions of the apps that android_world tasks use."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.apps.calendar import CALENDAR
from swarm_ui.environments.androidworld.handset.apps.clock import CLOCK
from swarm_ui.environments.androidworld.handset.apps.contacts import CONTACTS, DIALER
from swarm_ui.environments.androidworld.handset.apps.expense import EXPENSE
from swarm_ui.environments.androidworld.handset.apps.files.gallery import FILES, GALLERY
from swarm_ui.environments.androidworld.handset.apps.files.markor import MARKOR
from swarm_ui.environments.androidworld.handset.apps.files.media import CAMERA, DRAW, RECORDER
from swarm_ui.environments.androidworld.handset.apps.files.retro_music import RETRO_MUSIC
from swarm_ui.environments.androidworld.handset.apps.files.vlc import VLC
from swarm_ui.environments.androidworld.handset.apps.joplin import JOPLIN
from swarm_ui.environments.androidworld.handset.apps.messenger import MESSENGER
from swarm_ui.environments.androidworld.handset.apps.osmand import OSMAND
from swarm_ui.environments.androidworld.handset.apps.recipes import RECIPES
from swarm_ui.environments.androidworld.handset.apps.settings import CLIPPER, SETTINGS
from swarm_ui.environments.androidworld.handset.apps.sports import SPORTS
from swarm_ui.environments.androidworld.handset.apps.tasks import TASKS
from swarm_ui.environments.androidworld.handset.handset import AppSpec

APPS: tuple[AppSpec, ...] = (
    SETTINGS, CONTACTS, DIALER, MESSENGER, CLOCK, CALENDAR, TASKS, MARKOR, FILES, GALLERY, CAMERA,
    RECORDER, DRAW, EXPENSE, RECIPES, CLIPPER, JOPLIN, SPORTS, RETRO_MUSIC, VLC, OSMAND,
)  # fmt: skip
