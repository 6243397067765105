"""The screens of an invented app, except its forms and records."""

from __future__ import annotations

import msgspec

from swarm_ui.environments.phone.apps.app import listing, record_screen, setting_switch
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go, Search, SetSetting
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget


class Layout(msgspec.Struct, kw_only=True):
    """The contents of an app's screens, except forms and records."""

    lists: dict[Screen, Table] = {}
    searches: dict[Screen, Search] = {}
    """Screens that show a search instead of the records themselves."""
    search_button: str = ""
    links: dict[Screen, list[Widget]] = {}
    switches: dict[Screen, list[str]] = {}
    choices: dict[Screen, list[str]] = {}
    options: dict[str, tuple[str, ...]] = {}

    def build(self, device: Device, screen: Screen) -> list[Widget]:
        """The widgets of a screen, in reading order."""
        if screen.kind == "choice":
            chosen = device.settings[screen.of]
            return [
                Widget("radio", option, None, option == chosen, SetSetting(screen.of, option))
                for option in self.options[screen.of]
            ]
        if screen.kind == "missing":
            return [Widget("label", f"nothing found for {screen.of}")]
        table, search = self.lists.get(screen), self.searches.get(screen)
        shown: list[Widget] = []
        if search is not None and table is not None:
            shown = _search(device, table, search, self.search_button)
        elif table is not None:
            shown = listing(device, table)
        elif screen.kind not in ("list", "category"):
            return record_screen(device, self._table(screen.of), screen)
        shown.extend(setting_switch(device, key) for key in self.switches.get(screen, ()))
        for key in self.choices.get(screen, ()):
            go = Go(Screen(screen.app, "choice", key))
            shown.append(Widget("item", key, device.settings[key], effect=go))
        return [*shown, *self.links.get(screen, ())] or [Widget("label", "empty")]

    def _table(self, name: str) -> Table:
        return next(table for table in self.lists.values() if table.name == name)


def _search(device: Device, table: Table, search: Search, button: str) -> list[Widget]:
    """A search field with its button, and the button that adds a record."""
    text = device.draft.get(table.title, "")
    return [
        Widget(
            "field", f"{table.title} of the {table.name}", text, field=table.title, submit=search
        ),
        Widget("button", button, effect=search),
        Widget("button", table.add, effect=Go(table.screen("new"))),
    ]
