"""The apps that android_world's tasks are about, as editions over the phone's tables and files."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.apps.calendar import CALENDAR
from swarm_ui.environments.androidworld.handset.apps.clock import CLOCK
from swarm_ui.environments.androidworld.handset.apps.contacts import CONTACTS, DIALER
from swarm_ui.environments.androidworld.handset.apps.expense import EXPENSE
from swarm_ui.environments.androidworld.handset.apps.gallery import FILES, GALLERY
from swarm_ui.environments.androidworld.handset.apps.markor import MARKOR
from swarm_ui.environments.androidworld.handset.apps.media import CAMERA, DRAW, RECORDER
from swarm_ui.environments.androidworld.handset.apps.messenger import MESSENGER
from swarm_ui.environments.androidworld.handset.apps.recipes import RECIPES
from swarm_ui.environments.androidworld.handset.apps.settings import CLIPPER, SETTINGS
from swarm_ui.environments.androidworld.handset.apps.tasks import TASKS
from swarm_ui.environments.androidworld.handset.handset import Edition

EDITIONS: tuple[Edition, ...] = (
    SETTINGS, CONTACTS, DIALER, MESSENGER, CLOCK, CALENDAR, TASKS, MARKOR, FILES, GALLERY, CAMERA,
    RECORDER, DRAW, EXPENSE, RECIPES, CLIPPER,
)  # fmt: skip
