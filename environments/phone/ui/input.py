"""Presses of buttons and gestures, as agents and the reference solver make them."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.apps.messages import PICK
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_effects import DismissNotice, OpenNotice, PullShade
from swarm_ui.environments.phone.device.screen import Widget
from swarm_ui.environments.phone.device.system import DRAWER, HISTORY, SHADE
from swarm_ui.environments.phone.ui.interruptions import requested_permission

_OVER = (SHADE, HISTORY, PICK)
"""Screens that leave the form under them as it is."""


def back(device: Device) -> None:
    """The back button: a dialog goes first, then the keyboard, then the screen."""
    system = device.system
    if system is None:
        device.back()
    elif system.interruption(device) is not None:
        device.system = system.settled()
    elif requested_permission(device):
        device.back()
    elif device.focus:
        device.focus = ""
    else:
        device.show(device.stack[:-1], device.draft if device.screen in _OVER else None)


def gesture(device: Device, kind: str, direction: str, widget: Widget | None) -> bool:
    """What a scroll or swipe means to the full device; false: it moves the list in front.

    A swipe goes the way of the finger, a scroll the way of the content: a swipe down pulls the
    notifications down, a swipe up (or a scroll down) at home opens the drawer, a swipe aside on a
    notification dismisses it.
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
    """Put a text into a field, instead of what it holds; the keyboard comes up."""
    device.draft = {**device.draft, field: text}
    if device.system is not None:
        device.focus = field


def enter(device: Device, shown: Sequence[Widget]) -> str:
    """The enter key of the keyboard."""
    for widget in shown:
        if widget.zone == "key" and widget.text == "enter" and widget.effect is not None:
            return widget.effect.apply(device)
    return "nothing happened"
