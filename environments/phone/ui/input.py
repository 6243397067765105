"""Input of agents and of the reference solver: buttons, gestures, text."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.apps.messages import PICK
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_effects import DismissNotice, OpenNotice, PullShade
from swarm_ui.environments.phone.device.system import DRAWER, HISTORY, SHADE
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.ui.interruptions import current_interruption, requested_permission

_OVER = (SHADE, HISTORY, PICK)
"""Screens over a form that keep its contents."""


def back(device: Device) -> None:
    """Press back: it closes the dialog, else the keyboard, else the screen."""
    system = device.system
    if system is None:
        device.back()
    elif current_interruption(device) is not None:
        device.system = system.settled()
    elif requested_permission(device):
        device.back()
    elif device.focus:
        device.focus = ""
    else:
        device.show(device.stack[:-1], device.draft if device.screen in _OVER else None)


def gesture(device: Device, kind: str, direction: str, widget: Widget | None) -> bool:
    """Do a scroll or swipe on the full device; false if it scrolls the list in front instead.

    The direction of a swipe is that of the finger, the direction of a scroll is that of the view.
    A swipe down opens the notifications, a swipe up (or a scroll down) at home opens the drawer,
    and a swipe to the side on a notification dismisses it.
    """
    over = device.screen in (SHADE, HISTORY)
    if not device.stack and (kind, direction) in (("swipe", "up"), ("scroll", "down")):
        device.show((DRAWER,))
    elif kind != "swipe":
        return False
    elif direction == "down" and not over:
        PullShade().apply(device)
    elif direction == "up" and over:
        back(device)
    elif direction in ("left", "right") and widget and isinstance(widget.effect, OpenNotice):
        DismissNotice(widget.effect.notice).apply(device)
    else:
        return False
    return True


def write(device: Device, field: str, text: str) -> None:
    """Replace the text of a field; the keyboard appears."""
    device.draft = {**device.draft, field: text}
    if device.system is not None:
        device.focus = field


def enter(device: Device, shown: Sequence[Widget]) -> str:
    """Press the enter key."""
    for widget in shown:
        if widget.zone == "key" and widget.text == "enter" and widget.effect is not None:
            return widget.effect.apply(device)
    return "nothing happened"
