"""The plain phone of our own tasks as a handset: the same device, apps and screens, under adb.

assignment = assign("settings-two", seed=7)
handset = handset_of(assignment.start)
env = android_env(handset)
"""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.handset import Edition, Handset, Page
from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.ui.widgets import last_page, title
from swarm_ui.errors import ConfigError

PACKAGE = "org.swarm_ui.phone"


def handset_of(device: Device) -> Handset:
    """A handset with the apps, data and screen of a plain phone, which stays as it is.

    Decoys and the random order of our own environment's screens are not part of the device, so
    they are not shown.

    Raises:
        ConfigError: it is a whole phone, whose home screen, notifications and keyboard Android's
            own take the place of.
    """
    if device.system is not None:
        raise ConfigError("handset_of takes a plain phone's device; this one is of a whole phone")
    handset = Handset([_edition(name) for name in device.installed])
    for slot in Device.__slots__:
        setattr(handset, slot, getattr(device, slot))
    return handset


def _edition(name: str) -> Edition:
    return Edition(
        app=name,
        package=f"{PACKAGE}.{name}",
        activity=".Main",
        build=_page,
        pages=lambda handset: last_page(handset) + 1,
    )


def _page(handset: Handset, screen: Screen) -> Page:
    return Page(title=title(handset), rows=APPS[screen.app].build(handset, screen))
