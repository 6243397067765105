"""Setting a whole phone up: which apps it has, and what is around them."""

from __future__ import annotations

from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.apps.settings import BATTERY
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.system import PERMISSIONS, Notice, System
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.splits import EXTENDED_TEST_APPS, EXTENDED_TRAIN_APPS
from swarm_ui.environments.phone.tasks.template import Template
from swarm_ui.environments.phone.ui.screen import Screen

ALWAYS = ("settings", "files")
"""Apps that every whole phone has."""
_PINNED = 7
"""Favorites on the home screen."""
_TELLING = ("messages", "calendar", "tasks", "files", "contacts")
"""Apps that may have a notification at the start."""


def installed_whole(template: Template, draw: Draw) -> tuple[str, ...]:
    """The task's apps, those that are always there, and some others."""
    needed = tuple(dict.fromkeys((*template.apps, *ALWAYS)))
    if template.split == "extended_apps":
        candidates = (*EXTENDED_TRAIN_APPS, *EXTENDED_TEST_APPS)
    else:
        candidates = EXTENDED_TRAIN_APPS
    others = [name for name in candidates if name not in needed and name not in template.without]
    count = max(0, draw.pick((9, 11, 13)) - len(needed))
    return (*needed, *draw.rng.sample(others, min(count, len(others))))


def make_whole(device: Device, template: Template, draw: Draw) -> None:
    """Add what is around the apps; they are installed and filled already."""
    pinned = draw.rng.sample(device.installed, min(_PINNED, len(device.installed)))
    device.settings = {**device.settings, "wifi": "on", **dict.fromkeys(BATTERY, "off")}
    telling = [name for name in _TELLING if name in device.installed]
    notices = {}
    for app in draw.rng.sample(telling, min(2, len(telling))):
        notices[device.next_row] = Notice(app, draw.noun(), draw.phrase(2), (Screen(app),))
        device.next_row += 1
    device.system = System(
        favorites=tuple(pinned),
        clock=f"{int(draw.rng.random() * 24):02d}:{int(draw.rng.random() * 60):02d}",
        battery=str(20 + int(draw.rng.random() * 80)),
        notices=notices,
        grants=_unasked(device.installed),
    )


def _unasked(installed: tuple[str, ...]) -> dict[str, str]:
    """Every permission that an app may ask for, not asked for yet."""
    return {key: "ask" for name in sorted(installed) if name in _ASKS for key in _ASKS[name]}


_ASKS = {
    name: [f"{name} {asked}" for asked in sorted(set(app.needs.values()) & set(PERMISSIONS))]
    for name, app in APPS.items()
    if app.needs
}
"""App -> what it may ask for."""
