"""The effects of taps, as values that the solver can compare."""

from __future__ import annotations

import msgspec

from swarm_ui.environments.phone.state import Device, Row, Screen, Table, same_text


class Go(msgspec.Struct, frozen=True):
    """Open a screen on top of the present one: on the home screen, the first one of an app."""

    screen: Screen
    draft: Row = {}

    def apply(self, device: Device) -> None:
        device.show((*device.stack, self.screen), self.draft)


class Back(msgspec.Struct, frozen=True, gc=False):
    """Leave the present screen."""

    def apply(self, device: Device) -> None:
        device.back()


class Save(msgspec.Struct, frozen=True):
    """Save the current form, as a new record or into an existing one."""

    table: Table
    row: int = 0

    def apply(self, device: Device) -> str | None:
        table, draft = self.table, device.draft
        if not draft.get(table.title):
            device.toast = f"{table.title} is empty"
            return f"not saved: {device.toast}"
        if self.row:
            device.update(table.name, self.row, {f.name: draft.get(f.name, "") for f in table.form})
            device.back()
        else:
            device.insert(table.name, {f.name: draft.get(f.name, f.default) for f in table.fields})
            device.show(table.trail)
        device.toast = "sent" if table.save == "send" else "saved"
        return None


class Remove(msgspec.Struct, frozen=True):
    """Delete a record and go back to the list."""

    table: Table
    row: int

    def apply(self, device: Device) -> None:
        device.remove(self.table.name, self.row)
        device.show(self.table.trail)
        device.toast = "deleted"


class Flip(msgspec.Struct, frozen=True):
    """Toggle a switch or check box of a record."""

    table: Table
    row: int
    field: str

    def apply(self, device: Device) -> None:
        value = device.tables[self.table.name][self.row][self.field]
        device.update(self.table.name, self.row, {self.field: "off" if value == "on" else "on"})


class Choose(msgspec.Struct, frozen=True, gc=False):
    """Choose an option of the current form."""

    field: str
    value: str

    def apply(self, device: Device) -> None:
        device.draft = {**device.draft, self.field: self.value}


class SetSetting(msgspec.Struct, frozen=True, gc=False):
    """Set the value of a switch or choice of the device."""

    key: str
    value: str

    def apply(self, device: Device) -> None:
        device.set(self.key, self.value)


class Copy(msgspec.Struct, frozen=True, gc=False):
    """Copy a shown value."""

    field: str
    value: str

    def apply(self, device: Device) -> None:
        device.copied = (*device.copied, self.value)
        device.toast = "copied"


class Search(msgspec.Struct, frozen=True):
    """Open the record whose title equals the text in the field of that name."""

    table: Table

    def apply(self, device: Device) -> None:
        table, wanted = self.table, device.draft.get(self.table.title, "")
        for key, row in device.tables[table.name].items():
            if same_text(row[table.title], wanted):
                device.show((*device.stack, table.screen("detail", key)))
                return
        device.show((*device.stack, Screen(table.app, "missing", wanted.casefold())))
