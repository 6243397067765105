"""The widgets, the title and the pages of the current screen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from swarm_ui.environments.phone.apps import catalogue_of
from swarm_ui.environments.phone.apps.app import last_page_of
from swarm_ui.environments.phone.device.device import DRAWER, SYSTEM_TITLES, Device, System
from swarm_ui.environments.phone.device.effects import Focus, Go, Launch, PullShade, TypeCharacter
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.ui.interruptions import blocked_screen, dialog

_PAD = Widget("image", "", description="keyboard", zone="key")
_HIDE = Widget("button", "hide keyboard", effect=Focus(""), zone="key")
_SPACE = Widget("button", "space", effect=TypeCharacter(" "), zone="key")
_ERASE = Widget("button", "backspace", effect=TypeCharacter(""), zone="key")


def widgets(device: Device) -> list[Widget]:
    """The widgets of the current screen, in reading order, without toast and decoys."""
    if device.system is not None:
        return _full_widgets(device, device.system)
    screen = device.screen
    if screen is None:
        return [Widget("app", name, effect=Launch(name)) for name in device.installed]
    return catalogue_of(device).screens[screen.app].build(device, screen)


def title(device: Device) -> str:
    """The title of the current screen."""
    screen = device.screen
    if screen is None:
        return "home"
    if screen.app == "system":
        return SYSTEM_TITLES[screen.kind]
    if screen.kind in ("category", "choice", "grant", "folder"):
        return f"{screen.app} {screen.of}"
    if screen.kind == "list":
        return f"{screen.app} {screen.of}s" if screen.of else screen.app
    return f"{screen.app} {screen.kind}"


def last_page(device: Device) -> int:
    """Number of the last page of the current list; 0 if it does not scroll."""
    screen = device.screen
    if screen is None:
        return 0
    catalogue = catalogue_of(device)
    app = catalogue.screens[screen.app]
    if app.last is not None and (last := app.last(device, screen)):
        return last
    if screen.kind not in ("list", "remove"):
        return 0
    table = catalogue.tables.get(screen.of)
    if table is None:
        tables = app.tables
        if not tables or app.menu:
            return 0
        table = tables[0]
    return last_page_of(len(device.tables[table.name]))


def _full_widgets(device: Device, system: System) -> list[Widget]:
    """Status bar, screen or dialog, and keyboard."""
    bar = _status(system.clock, system.battery, device.settings["wifi"], len(system.notices))
    over = dialog(device, system)
    if over is not None:
        return [*bar, *over]
    screen = device.screen
    if screen is None:
        icons = [Widget("app", n, effect=Launch(n), zone="icon") for n in system.favorites]
        all_apps = Widget("icon", "all apps", effect=Go(DRAWER), zone="icon")
        return [*bar, *icons, all_apps]
    content = blocked_screen(device, screen)
    content = content or catalogue_of(device).screens[screen.app].build(device, screen)
    shown = [*bar, _heading(title(device)), *content]
    if device.focus:
        shown.extend(_keyboard(content, device.focus))
    return shown


@lru_cache(maxsize=4096)
def _status(clock: str, battery: str, wifi: str, notices: int) -> tuple[Widget, ...]:
    """Clock and icons. The icon for notifications opens the shade."""
    shown = [
        Widget("text", clock, description="clock", zone="status"),
        Widget("icon", "", description=f"battery {battery} percent", zone="status"),
        Widget("icon", "", description=f"wifi {wifi}", zone="status"),
    ]
    if notices:
        count = f"{notices} notification{'s' if notices > 1 else ''}"
        shown.append(Widget("icon", "", description=count, effect=PullShade(), zone="status"))
    return tuple(shown)


@lru_cache(maxsize=4096)
def _heading(text: str) -> Widget:
    return Widget("heading", text, zone="heading")


def _keyboard(content: Sequence[Widget], focus: str) -> list[Widget]:
    """The keys shown while a field has the focus.

    In a search field, enter starts the search. In other fields it moves the focus to the next
    field, and in the last field it hides the keyboard.
    """
    fields = [widget for widget in content if widget.field is not None]
    names = [widget.field or "" for widget in fields]
    if focus not in names:
        return []
    at = names.index(focus)
    after = names[at + 1] if at + 1 < len(names) else ""
    effect = fields[at].submit or Focus(after)
    return [_PAD, Widget("button", "enter", effect=effect, zone="key"), _HIDE, _SPACE, _ERASE]
