"""A handset with the apps, data and screens of the simulated phone.

assignment = assign("settings-two", seed=7)
handset = handset_of(assignment.start)
env = android_env(handset)
"""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Page
from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.ui.widgets import last_page, title
from swarm_ui.errors import ConfigError

PACKAGE = "org.swarm_ui.phone"


def handset_of(device: Device) -> Handset:
    """A handset with the apps, data and screen of a phone. The phone itself does not change.

    Decoys and the random order of the phone environment's screens are not part of the device, so
    the handset does not show them.

    Raises:
        ConfigError: the phone has a home screen, notifications and a keyboard of its own. The
            handset has Android's.
    """
    if device.system is not None:
        raise ConfigError("handset_of takes a plain phone's device; this one is of a full phone")
    handset = Handset([_app_spec(name) for name in device.installed])
    for slot in Device.__slots__:
        setattr(handset, slot, getattr(device, slot))
    return handset


def _app_spec(name: str) -> AppSpec:
    return AppSpec(
        name=name,
        package=f"{PACKAGE}.{name}",
        activity=".Main",
        build=_page,
        pages=lambda handset: last_page(handset) + 1,
    )


def _page(handset: Handset, screen: Screen) -> Page:
    return Page(title=title(handset), rows=APPS[screen.app].build(handset, screen))
