"""Apply actions of agents, and the input of the reference solver, to a device."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.action import Action
from swarm_ui.environments.phone.apps.messages import PICK
from swarm_ui.environments.phone.device.device import DRAWER, HISTORY, SHADE, Device
from swarm_ui.environments.phone.device.effects import (
    DismissNotices,
    Launch,
    OpenNotice,
    PullShade,
    TypeCharacter,
)
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.ui.geometry import key_at
from swarm_ui.environments.phone.ui.interruptions import current_interruption, requested_permission
from swarm_ui.environments.phone.ui.layout import View
from swarm_ui.environments.phone.ui.widgets import last_page

_TAPS = frozenset(("click", "double_tap", "long_press"))
_OVER = (SHADE, HISTORY, PICK)
"""Kinds of screens that open over a form and keep its contents."""
NOTHING = "nothing happened"


def act(device: Device, view: View, action: Action) -> str:
    """Apply an action to ``device``, shown as ``view``. Returns a note if the action is invalid."""
    kind = action.action_type
    note: str | None = None
    device.toast = ""
    if kind in _TAPS or kind in ("input_text", "select"):
        note = _point(device, view, action)
    elif kind == "navigate_back":
        note = "" if device.stack or current_interruption(device) else "already at home"
        back(device)
    elif kind == "navigate_home":
        note = "" if device.stack else "already at home"
        device.show(())
    elif kind == "open_app":
        app = (action.app_name or "").casefold().strip()
        if app in device.installed:
            Launch(app).apply(device)
        else:
            note = f"no app {app!r}"
    elif kind == "answer":
        device.answer = action.text
    elif kind in ("scroll", "swipe"):
        note = _scroll(device, view, action)
    elif kind == "keyboard_enter" and device.focus:
        note = enter(device, view.widgets)
    else:
        note = NOTHING
    return note or ""


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


def write(device: Device, field: str, text: str) -> None:
    """Replace the text of a field; the keyboard appears."""
    device.draft = {**device.draft, field: text}
    if device.system is not None:
        device.focus = field


def enter(device: Device, shown: Sequence[Widget]) -> str | None:
    """Press the enter key."""
    for widget in shown:
        if widget.zone == "key" and widget.text == "enter" and widget.effect is not None:
            return widget.effect.apply(device)
    return NOTHING


def _point(device: Device, view: View, action: Action) -> str | None:
    index = view.find(action)
    if index is None:
        where = f"element {action.index}" if action.index is not None else "element there"
        return f"no {where}: the screen has {len(view.elements)} elements"
    widget = view.widgets[view.order[index]]
    if action.action_type == "input_text":
        if widget.field is None:
            return f"{widget.role} “{widget.text}” takes no text"
        write(device, widget.field, " ".join((action.text or "").split()))
        return None
    if action.action_type == "select":
        return f"{widget.role} “{widget.text}” has no options to select from"
    if widget.effect is not None:
        return widget.effect.apply(device)
    return NOTHING if device.system is None else _touch(device, widget, action)


def _touch(device: Device, widget: Widget, action: Action) -> str:
    """Tap a field, which shows the keyboard, or a letter of the keyboard."""
    if widget.field is not None:
        device.focus = widget.field
        return ""
    on_keys = widget.zone == "key" and action.x is not None and action.y is not None
    character = key_at(action.x or 0, action.y or 0) if on_keys else ""
    if not character:
        return NOTHING
    TypeCharacter(character).apply(device)
    return ""


def _scroll(device: Device, view: View, action: Action) -> str:
    if device.system is not None and _gesture(device, view, action):
        return ""
    forward = action.direction in ("down", "right")
    if action.action_type == "swipe":  # the finger moves opposite to the view
        forward = not forward
    page = device.page + (1 if forward else -1)
    if not 0 <= page <= last_page(device):
        return "nothing to scroll there"
    device.page = page
    return ""


def _gesture(device: Device, view: View, action: Action) -> bool:
    """Do a scroll or swipe on the full device; false if it scrolls the current list instead.

    The direction of a swipe is that of the finger, the direction of a scroll is that of the view.
    A swipe down opens the notifications, a swipe up (or a scroll down) at home opens the drawer,
    and a swipe to the side on a notification dismisses it.
    """
    at = view.find(action)
    effect = None if at is None else view.widgets[view.order[at]].effect
    kind, direction = action.action_type, action.direction or "down"
    over = device.screen in (SHADE, HISTORY)
    if not device.stack and (kind, direction) in (("swipe", "up"), ("scroll", "down")):
        device.show((DRAWER,))
    elif kind != "swipe":
        return False
    elif direction == "down" and not over:
        PullShade().apply(device)
    elif direction == "up" and over:
        back(device)
    elif direction in ("left", "right") and isinstance(effect, OpenNotice):
        DismissNotices((effect.notice,)).apply(device)
    else:
        return False
    return True
