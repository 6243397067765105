"""Effects of taps, as values that the solver can compare."""

from __future__ import annotations

import msgspec

from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Screen


class Launch(msgspec.Struct, frozen=True, gc=False):
    """Open an app at its first screen."""

    app: str

    def apply(self, device: Device) -> str:
        device.show((Screen(self.app),))
        return ""


class Go(msgspec.Struct, frozen=True):
    """Open a screen on top of the present one."""

    screen: Screen
    draft: Row = {}

    def apply(self, device: Device) -> str:
        device.show((*device.stack, self.screen), self.draft)
        return ""


class Back(msgspec.Struct, frozen=True, gc=False):
    """Leave the present screen."""

    def apply(self, device: Device) -> str:
        device.back()
        return ""


class Insert(msgspec.Struct, frozen=True):
    """Save the form in front as a new record."""

    table: Table

    def apply(self, device: Device) -> str:
        table, draft = self.table, device.draft
        if not draft.get(table.title):
            device.toast = f"{table.title} is empty"
            return f"not saved: {device.toast}"
        device.insert(table.name, {f.name: draft.get(f.name, f.default) for f in table.fields})
        device.show(table.trail)
        device.toast = "sent" if table.save == "send" else "saved"
        return ""


class Update(msgspec.Struct, frozen=True):
    """Save the form in front into an existing record."""

    table: Table
    row: int

    def apply(self, device: Device) -> str:
        table, draft = self.table, device.draft
        if not draft.get(table.title):
            device.toast = f"{table.title} is empty"
            return f"not saved: {device.toast}"
        device.update(table.name, self.row, {f.name: draft.get(f.name, "") for f in table.form})
        device.back()
        device.toast = "saved"
        return ""


class Remove(msgspec.Struct, frozen=True):
    """Delete a record and go back to the list."""

    table: Table
    row: int

    def apply(self, device: Device) -> str:
        device.remove(self.table.name, self.row)
        device.show(self.table.trail)
        device.toast = "deleted"
        return ""


class Flip(msgspec.Struct, frozen=True):
    """Toggle a switch or check box of a record."""

    table: Table
    row: int
    field: str

    def apply(self, device: Device) -> str:
        value = device.tables[self.table.name][self.row][self.field]
        device.update(self.table.name, self.row, {self.field: "off" if value == "on" else "on"})
        return ""


class Choose(msgspec.Struct, frozen=True, gc=False):
    """Choose an option of the form in front."""

    field: str
    value: str

    def apply(self, device: Device) -> str:
        device.draft = {**device.draft, self.field: self.value}
        return ""


class FlipSetting(msgspec.Struct, frozen=True, gc=False):
    """Toggle a switch of the device."""

    key: str

    def apply(self, device: Device) -> str:
        device.set(self.key, "off" if device.settings[self.key] == "on" else "on")
        return ""


class SetSetting(msgspec.Struct, frozen=True, gc=False):
    """Choose an option of the device."""

    key: str
    value: str

    def apply(self, device: Device) -> str:
        device.set(self.key, self.value)
        return ""


class Copy(msgspec.Struct, frozen=True, gc=False):
    """Copy a shown value."""

    field: str
    value: str

    def apply(self, device: Device) -> str:
        device.copied = (*device.copied, self.value)
        device.toast = "copied"
        return ""
