"""The definitions of all apps that a device may have."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from swarm_ui.environments.phone.apps.app import App, Setting
from swarm_ui.environments.phone.device.schema import Table


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Apps by name, with all their tables and settings."""

    screens: Mapping[str, App]
    """The apps, and the system UI if the device has one."""
    tables: Mapping[str, Table]
    places: Mapping[str, Setting]
    """All switches and choices, with their screens."""

    @staticmethod
    def of(
        apps: tuple[App, ...],
        *,
        system: tuple[App, ...] = (),
        settings: Mapping[str, Setting] | None = None,
    ) -> Catalogue:
        """Make a catalogue of apps.

        Args:
            apps: the apps. Their names, and those of their tables and settings, must be unique.
            system: the system UI (drawer and notifications), as an app; empty: there is none.
            settings: switches and choices that belong to no app.
        """
        return Catalogue(
            screens={app.name: app for app in (*apps, *system)},
            tables={table.name: table for app in apps for table in app.tables},
            places={
                **{key: place for app in apps for key, place in app.settings.items()},
                **(settings or {}),
            },
        )
