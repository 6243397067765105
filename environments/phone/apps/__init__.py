"""The apps of the embedded phone."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.apps.app import App, Setting
from swarm_ui.environments.phone.apps.browser import BROWSER
from swarm_ui.environments.phone.apps.calendar import CALENDAR
from swarm_ui.environments.phone.apps.camera import CAMERA
from swarm_ui.environments.phone.apps.clock import CLOCK
from swarm_ui.environments.phone.apps.contacts import CONTACTS
from swarm_ui.environments.phone.apps.expenses import EXPENSES
from swarm_ui.environments.phone.apps.files import FILES
from swarm_ui.environments.phone.apps.gallery import GALLERY
from swarm_ui.environments.phone.apps.maps import MAPS
from swarm_ui.environments.phone.apps.messages import MESSAGES
from swarm_ui.environments.phone.apps.music import MUSIC
from swarm_ui.environments.phone.apps.notes import NOTES
from swarm_ui.environments.phone.apps.recipes import RECIPES
from swarm_ui.environments.phone.apps.recorder import RECORDER
from swarm_ui.environments.phone.apps.settings import BATTERY, SETTINGS
from swarm_ui.environments.phone.apps.system_screens import SYSTEM_UI
from swarm_ui.environments.phone.apps.tasks import TASKS
from swarm_ui.environments.phone.device.schema import Table

_CORE = (
    SETTINGS, CONTACTS, MESSAGES, CLOCK, NOTES, TASKS, EXPENSES, CALENDAR, RECIPES, MUSIC,
)  # fmt: skip
_ALL = (*_CORE, FILES, BROWSER, CAMERA, GALLERY, RECORDER, MAPS)
CORE_APPS = tuple(app.name for app in _CORE)
"""Apps of the core device; the others are installed only on a whole one."""
APPS: Mapping[str, App] = {app.name: app for app in _ALL}
SCREENS: Mapping[str, App] = {**APPS, SYSTEM_UI.name: SYSTEM_UI}
"""All that builds screens."""
TABLES: Mapping[str, Table] = {table.name: table for app in _ALL for table in app.tables}
PLACES: Mapping[str, Setting] = {
    **{key: place for app in _ALL for key, place in app.settings.items()},
    **BATTERY,
}
"""Every switch and choice of the device, and where it is."""
