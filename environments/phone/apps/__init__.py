"""The apps of the embedded phone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from swarm_ui.environments.phone.apps.app import App, Setting
from swarm_ui.environments.phone.apps.camera import CAMERA
from swarm_ui.environments.phone.apps.catalogue import Catalogue
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
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table

_CORE = (
    SETTINGS, CONTACTS, MESSAGES, CLOCK, NOTES, TASKS, EXPENSES, CALENDAR, RECIPES, MUSIC,
)  # fmt: skip
_ALL = (*_CORE, FILES, BROWSER, CAMERA, GALLERY, RECORDER, MAPS)
CORE_APPS = tuple(app.name for app in _CORE)
"""Apps of the core device; the others are installed only on a whole one."""
APPS: Mapping[str, App] = {app.name: app for app in _ALL}
STANDARD = Catalogue.of(_ALL, system=(SYSTEM_UI,), settings=BATTERY)
"""The phone's own apps."""
SCREENS: Mapping[str, App] = STANDARD.screens
"""The apps and the system UI: all that can build screens."""
TABLES: Mapping[str, Table] = STANDARD.tables
PLACES: Mapping[str, Setting] = STANDARD.places
"""Every switch and choice of the device, and where it is."""


def catalogue_of(device: Device) -> Catalogue:
    """The apps that a device may have."""
    return STANDARD if device.catalogue is None else cast(Catalogue, device.catalogue)
