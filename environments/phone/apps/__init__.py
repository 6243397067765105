"""The apps of the embedded phone."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.apps.app import App, Setting
from swarm_ui.environments.phone.apps.camera import CAMERA
from swarm_ui.environments.phone.apps.files import FILES, GALLERY, RECORDER
from swarm_ui.environments.phone.apps.messages import MESSAGES
from swarm_ui.environments.phone.apps.record_apps import (
    CALENDAR,
    CLOCK,
    CONTACTS,
    EXPENSES,
    MUSIC,
    NOTES,
    RECIPES,
    TASKS,
)
from swarm_ui.environments.phone.apps.search_apps import BROWSER, MAPS
from swarm_ui.environments.phone.apps.settings import BATTERY, SETTINGS
from swarm_ui.environments.phone.apps.system_screens import SYSTEM_UI
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
