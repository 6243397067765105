"""Effects of taps, as values that the solver can compare.

``TypeCharacter`` and the effects after it need a full device.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.environments.phone.device.device import SHADE, Device, Notice, Row, System
from swarm_ui.environments.phone.device.schema import Table, same_text
from swarm_ui.environments.phone.device.screen import Path, Screen


class Launch(msgspec.Struct, frozen=True, gc=False):
    """Open an app at its first screen."""

    app: str

    def apply(self, device: Device) -> None:
        device.show((Screen(self.app),))


class Go(msgspec.Struct, frozen=True):
    """Open a screen on top of the present one."""

    screen: Screen
    draft: Row = {}

    def apply(self, device: Device) -> None:
        device.show((*device.stack, self.screen), self.draft)


class Back(msgspec.Struct, frozen=True, gc=False):
    """Leave the present screen."""

    def apply(self, device: Device) -> None:
        device.back()


class Insert(msgspec.Struct, frozen=True):
    """Save the current form as a new record."""

    table: Table

    def apply(self, device: Device) -> str | None:
        table, draft = self.table, device.draft
        if not draft.get(table.title):
            device.toast = f"{table.title} is empty"
            return f"not saved: {device.toast}"
        device.insert(table.name, {f.name: draft.get(f.name, f.default) for f in table.fields})
        device.show(table.trail)
        device.toast = "sent" if table.save == "send" else "saved"
        return None


class Update(msgspec.Struct, frozen=True):
    """Save the current form into an existing record."""

    table: Table
    row: int

    def apply(self, device: Device) -> str | None:
        table, draft = self.table, device.draft
        if not draft.get(table.title):
            device.toast = f"{table.title} is empty"
            return f"not saved: {device.toast}"
        device.update(table.name, self.row, {f.name: draft.get(f.name, "") for f in table.form})
        device.back()
        device.toast = "saved"
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


def system_of(device: Device) -> System:
    """The system UI of a full device."""
    assert device.system is not None, "the core device has no system UI"
    return device.system


class TypeCharacter(msgspec.Struct, frozen=True, gc=False):
    """Add a character to the field in focus. If ``character`` is empty, delete the last one."""

    character: str

    def apply(self, device: Device) -> None:
        text = device.draft.get(device.focus, "")
        text = text + self.character if self.character else text[:-1]
        device.draft = {**device.draft, device.focus: text}


class Focus(msgspec.Struct, frozen=True, gc=False):
    """Move the focus to another field. If ``field`` is empty, hide the keyboard."""

    field: str

    def apply(self, device: Device) -> None:
        device.focus = self.field


class Search(msgspec.Struct, frozen=True, gc=False):
    """Open the record of ``table`` whose ``field`` equals the text in the field of that name."""

    app: str
    table: str
    field: str

    def apply(self, device: Device) -> None:
        wanted = device.draft.get(self.field, "")
        for key, row in device.tables[self.table].items():
            if same_text(row[self.field], wanted):
                device.show((*device.stack, Screen(self.app, "detail", self.table, key)))
                return
        device.show((*device.stack, Screen(self.app, "missing", wanted.casefold())))


class PullShade(msgspec.Struct, frozen=True, gc=False):
    """Show the notifications over the current screen."""

    def apply(self, device: Device) -> None:
        if device.screen != SHADE:
            device.show((*device.stack, SHADE), device.draft)


class OpenNotice(msgspec.Struct, frozen=True, gc=False):
    """Open the screen of a notification, and dismiss the notification."""

    notice: int

    def apply(self, device: Device) -> None:
        system = system_of(device)
        path = system.notices[self.notice].path
        last = path[-1]
        if last.row and last.row not in device.tables[last.of]:
            path = path[:1]  # its record was deleted
        system = msgspec.structs.replace(system, read=system.read | {self.notice})
        device.system = system.dismiss(self.notice)
        device.show(path)


class DismissNotices(msgspec.Struct, frozen=True):
    """Dismiss notifications."""

    notices: tuple[int, ...]

    def apply(self, device: Device) -> None:
        device.system = system_of(device).dismiss(*self.notices)


class RestoreNotice(msgspec.Struct, frozen=True, gc=False):
    """Restore a notification from the history."""

    notice: int

    def apply(self, device: Device) -> None:
        device.system = system_of(device).put_back(self.notice)


class Grant(msgspec.Struct, frozen=True, gc=False):
    """Answer a permission request, or change the answer in the settings."""

    key: str
    value: Literal["allow", "once", "deny", "ask"]

    def apply(self, device: Device) -> None:
        device.system = system_of(device).granted(self.key, self.value)


class AnswerInterruption(msgspec.Struct, frozen=True, gc=False):
    """Answer an interruption: accept its offer, or close it."""

    accept: bool

    def apply(self, device: Device) -> None:
        system = system_of(device)
        kind = system.pending[0].kind
        device.system = system.settled()
        if self.accept and kind == "battery":
            device.set("battery saver", "on")
        elif self.accept:
            device.show((Screen("system", "updating" if kind == "update" else "store"),))


class PickValue(msgspec.Struct, frozen=True, gc=False):
    """Fill a value into the form below, and go back to it."""

    field: str
    value: str

    def apply(self, device: Device) -> None:
        device.show(device.stack[:-1], {**device.draft, self.field: self.value})


class Share(msgspec.Struct, frozen=True):
    """Open a form of another app, with a value filled in."""

    path: Path
    field: str
    value: str

    def apply(self, device: Device) -> None:
        device.show(self.path, {self.field: self.value})


class Trash(msgspec.Struct, frozen=True, gc=False):
    """Move a file to the trash and go back to the list, or restore it from there."""

    row: int
    restore: bool = False

    def apply(self, device: Device) -> None:
        row = device.tables["file"][self.row]
        moved = {"folder": row["was"], "was": ""}
        if not self.restore:
            moved = {"folder": "trash", "was": row["folder"]}
        device.update("file", self.row, moved)
        device.show(device.stack[: -1 if self.restore else -2])
        device.toast = "restored" if self.restore else "moved to trash"


class SaveCapture(msgspec.Struct, frozen=True, gc=False):
    """Save a photo, video or recording with the settings of the current form."""

    kind: Literal["photo", "video", "recording"]

    def apply(self, device: Device) -> str | None:
        draft, number = device.draft, device.next_row
        row = {"kind": self.kind, "size": str(number % 90 + 1), "starred": "off", "was": ""}
        if self.kind == "recording":
            if not draft.get("name"):
                device.toast = "name is empty"
                return "not saved: name is empty"
            row |= {"name": draft["name"], "folder": "recordings", "lens": "", "flash": ""}
        else:
            name = f"img_{number:04d}" if self.kind == "photo" else f"vid_{number:04d}"
            row |= {"name": name, "folder": "pictures"}
            row |= {"lens": draft.get("lens", "back"), "flash": draft.get("flash", "off")}
        device.insert("file", row)
        if self.kind != "photo":
            device.show(device.stack[:-1])
        device.toast = "saved"
        return None


class Download(msgspec.Struct, frozen=True, gc=False):
    """Save the file of a web page, and notify. A core device cannot: it may lack the files app."""

    page: int

    def apply(self, device: Device) -> str | None:
        if device.system is None:
            return "this device stores no downloads"
        page = device.tables["page"][self.page]
        row = {"name": page["file"], "folder": "downloads", "kind": "document"}
        row |= {"size": page["size"], "starred": "off", "was": "", "lens": "", "flash": ""}
        identity = device.insert("file", row)
        path = (
            Screen("files"),
            Screen("files", "folder", "downloads"),
            Screen("files", "detail", "file", identity),
        )
        notice = Notice("files", "download finished", page["file"], path)
        device.system = device.system.notified(identity, notice)
        device.toast = "downloaded"
        return None
