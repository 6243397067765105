"""Effects of taps that only the full device has. See also ``effects.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from swarm_ui.environments.phone.device.schema import same_text
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.system import SHADE, Notice, System

if TYPE_CHECKING:
    from swarm_ui.environments.phone.device.device import Device


def system_of(device: Device) -> System:
    """The system UI of a full device."""
    assert device.system is not None, "the core device has no system UI"
    return device.system


class TypeCharacter(msgspec.Struct, frozen=True, gc=False):
    """Add a character to the field in focus; empty: delete the last one."""

    character: str

    def apply(self, device: Device) -> str:
        text = device.draft.get(device.focus, "")
        text = text + self.character if self.character else text[:-1]
        device.draft = {**device.draft, device.focus: text}
        return ""


class Focus(msgspec.Struct, frozen=True, gc=False):
    """Move the focus to another field; empty: hide the keyboard."""

    field: str

    def apply(self, device: Device) -> str:
        device.focus = self.field
        return ""


class Search(msgspec.Struct, frozen=True, gc=False):
    """Open the record of ``table`` whose ``field`` equals the text in the field of that name."""

    app: str
    table: str
    field: str

    def apply(self, device: Device) -> str:
        wanted = device.draft.get(self.field, "")
        for key, row in device.tables[self.table].items():
            if same_text(row[self.field], wanted):
                device.show((*device.stack, Screen(self.app, "detail", self.table, key)))
                return ""
        device.show((*device.stack, Screen(self.app, "missing", wanted.casefold())))
        return ""


class PullShade(msgspec.Struct, frozen=True, gc=False):
    """Show the notifications over the screen in front."""

    def apply(self, device: Device) -> str:
        if device.screen != SHADE:
            device.show((*device.stack, SHADE), device.draft)
        return ""


class OpenNotice(msgspec.Struct, frozen=True, gc=False):
    """Open the screen of a notification, and dismiss the notification."""

    notice: int

    def apply(self, device: Device) -> str:
        system = system_of(device)
        path = system.notices[self.notice].path
        last = path[-1]
        if last.row and last.row not in device.tables[last.of]:
            path = path[:1]  # its record was deleted
        device.system = system.dismiss(self.notice)
        device.show(path)
        return ""


class DismissNotice(msgspec.Struct, frozen=True, gc=False):
    """Dismiss a notification."""

    notice: int

    def apply(self, device: Device) -> str:
        device.system = system_of(device).dismiss(self.notice)
        return ""


class ClearNotices(msgspec.Struct, frozen=True, gc=False):
    """Dismiss all notifications."""

    def apply(self, device: Device) -> str:
        system = system_of(device)
        device.system = system.dismiss(*system.notices)
        return ""


class RestoreNotice(msgspec.Struct, frozen=True, gc=False):
    """Restore a notification from the history."""

    notice: int

    def apply(self, device: Device) -> str:
        device.system = system_of(device).put_back(self.notice)
        return ""


class Grant(msgspec.Struct, frozen=True, gc=False):
    """Answer a permission request, or change the answer in the settings."""

    key: str
    value: Literal["allow", "once", "deny", "ask"]

    def apply(self, device: Device) -> str:
        device.system = system_of(device).granted(self.key, self.value)
        return ""


class AnswerInterruption(msgspec.Struct, frozen=True, gc=False):
    """Answer an interruption: accept its offer, or close it."""

    accept: bool

    def apply(self, device: Device) -> str:
        system = system_of(device)
        kind = system.pending[0].kind
        device.system = system.settled()
        if self.accept and kind == "battery":
            device.set("battery saver", "on")
        elif self.accept:
            device.show((Screen("system", "updating" if kind == "update" else "store"),))
        return ""


class PickValue(msgspec.Struct, frozen=True, gc=False):
    """Fill a value into the form below, and go back to it."""

    field: str
    value: str

    def apply(self, device: Device) -> str:
        device.show(device.stack[:-1], {**device.draft, self.field: self.value})
        return ""


class Share(msgspec.Struct, frozen=True):
    """Open a form of another app, with a value filled in."""

    path: Path
    field: str
    value: str

    def apply(self, device: Device) -> str:
        device.show(self.path, {self.field: self.value})
        return ""


class MoveToTrash(msgspec.Struct, frozen=True, gc=False):
    """Move a file to the trash and go back to the list."""

    row: int

    def apply(self, device: Device) -> str:
        was = device.tables["file"][self.row]["folder"]
        device.update("file", self.row, {"folder": "trash", "was": was})
        device.show(device.stack[:-2])
        device.toast = "moved to trash"
        return ""


class RestoreFile(msgspec.Struct, frozen=True, gc=False):
    """Move a file from the trash to its former folder."""

    row: int

    def apply(self, device: Device) -> str:
        was = device.tables["file"][self.row]["was"]
        device.update("file", self.row, {"folder": was, "was": ""})
        device.show(device.stack[:-1])
        device.toast = "restored"
        return ""


class SaveCapture(msgspec.Struct, frozen=True, gc=False):
    """Save a photo, video or recording with the settings of the form in front."""

    kind: Literal["photo", "video", "recording"]

    def apply(self, device: Device) -> str:
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
        return ""


class Download(msgspec.Struct, frozen=True, gc=False):
    """Save the file of a web page, and notify."""

    page: int

    def apply(self, device: Device) -> str:
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
        device.system = system_of(device).notified(identity, notice)
        device.toast = "downloaded"
        return ""
