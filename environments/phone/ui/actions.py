"""Apply an action to a device."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Launch
from swarm_ui.environments.phone.device.full_effects import TypeCharacter
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.ui.input import back, enter, gesture, write
from swarm_ui.environments.phone.ui.keyboard import key_at
from swarm_ui.environments.phone.ui.layout import View
from swarm_ui.environments.phone.ui.widgets import last_page

_TAPS = frozenset(("click", "double_tap", "long_press"))


class Outcome(msgspec.Struct, frozen=True):
    """The result of an action."""

    note: str = ""
    declared: Literal["complete", "infeasible"] | None = None
    """Set if the action ends the episode."""


_DONE = Outcome()


def act(device: Device, view: View, action: Action) -> Outcome:
    """Apply an action to ``device``, shown as ``view``. An invalid action gets a note, no error."""
    kind = action.action_type
    if kind == "status":
        return Outcome(declared=action.goal_status)
    device.toast = ""
    if kind in _TAPS or kind in ("input_text", "select"):
        note = _point(device, view, action)
    elif kind == "navigate_back":
        note = "" if device.stack else "already at home"
        back(device)
    elif kind == "navigate_home":
        note = "" if device.stack else "already at home"
        device.show(())
    elif kind == "open_app":
        note = _open(device, action.app_name or "")
    elif kind == "answer":
        device.answer = action.text
        note = ""
    elif kind in ("scroll", "swipe"):
        note = _scroll(device, view, action)
    elif kind == "keyboard_enter" and device.focus:
        note = enter(device, view.widgets)
    else:
        note = "nothing happened"
    return Outcome(note) if note else _DONE


def _point(device: Device, view: View, action: Action) -> str:
    index = view.find(action)
    if index is None:
        where = f"element {action.index}" if action.index is not None else "element there"
        return f"no {where}: the screen has {len(view.elements)} elements"
    widget = view.widgets[view.order[index]]
    if action.action_type == "input_text":
        if widget.field is None:
            return f"{widget.role} “{widget.text}” takes no text"
        text = " ".join((action.text or "").split())
        write(device, widget.field, text)
        return ""
    if action.action_type == "select":
        return f"{widget.role} “{widget.text}” has no options to select from"
    if device.system is not None and widget.effect is None:
        return _touch(device, widget, action)
    if widget.effect is None:
        return "nothing happened"
    return widget.effect.apply(device)


def _touch(device: Device, widget: Widget, action: Action) -> str:
    """Tap a field, which shows the keyboard, or a letter of the keyboard."""
    if widget.field is not None:
        device.focus = widget.field
        return ""
    if widget.zone == "key" and action.x is not None and action.y is not None:
        character = key_at(action.x, action.y)
        return TypeCharacter(character).apply(device) if character else "nothing happened"
    return "nothing happened"


def _open(device: Device, name: str) -> str:
    app = name.casefold().strip()
    if app not in device.installed:
        return f"no app {name!r}"
    return Launch(app).apply(device)


def _scroll(device: Device, view: View, action: Action) -> str:
    if device.system is not None:
        at = view.find(action)
        widget = None if at is None else view.widgets[view.order[at]]
        if gesture(device, action.action_type, action.direction or "down", widget):
            return ""
    forward = action.direction in ("down", "right")
    if action.action_type == "swipe":  # the finger goes the other way than the content
        forward = not forward
    page = device.page + (1 if forward else -1)
    if not 0 <= page <= last_page(device):
        return "nothing to scroll there"
    device.page = page
    return ""
