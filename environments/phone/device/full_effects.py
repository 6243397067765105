"""What taps do on a whole phone, beyond what they do in the plain one: see ``effects.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from swarm_ui.environments.phone.device.schema import same_text
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.system import SHADE, Notice, System

if TYPE_CHECKING:
    from swarm_ui.environments.phone.device.device import Device


def system_of(device: Device) -> System:
    """What is system the apps of a whole phone."""
    assert device.system is not None, "a plain phone has no such widget"
    return device.system


class TypeCharacter(msgspec.Struct, frozen=True, gc=False):
    """Add a character to the field in focus; empty: take the last one away."""

    character: str

    def apply(self, device: Device) -> str:
        text = device.draft.get(device.focus, "")
        text = text + self.character if self.character else text[:-1]
        device.draft = {**device.draft, device.focus: text}
        return ""


class Focus(msgspec.Struct, frozen=True, gc=False):
    """Type into another field from now on; empty: put the keyboard away."""

    field: str

    def apply(self, device: Device) -> str:
        device.focus = self.field
        return ""


class Search(msgspec.Struct, frozen=True, gc=False):
    """Open the record of ``table`` whose ``field`` is what the field of that name holds."""

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
    """Show the notifications over whatever is in front, which stays as it is."""

    def apply(self, device: Device) -> str:
        if device.screen != SHADE:
            device.show((*device.stack, SHADE), device.draft)
        return ""


class OpenNotice(msgspec.Struct, frozen=True, gc=False):
    """Open what a notification is about; the notification is done with."""

    notice: int

    def apply(self, device: Device) -> str:
        system = system_of(device)
        path = system.notices[self.notice].path
        last = path[-1]
        if last.row and last.row not in device.tables[last.of]:
            path = path[:1]  # what it is about was deleted
        device.system = system.dismiss(self.notice)
        device.show(path)
        return ""


class DismissNotice(msgspec.Struct, frozen=True, gc=False):
    """Take a notification out of the shade."""

    notice: int

    def apply(self, device: Device) -> str:
        device.system = system_of(device).dismiss(self.notice)
        return ""


class ClearNotices(msgspec.Struct, frozen=True, gc=False):
    """Take all notifications out of the shade."""

    def apply(self, device: Device) -> str:
        system = system_of(device)
        device.system = system.dismiss(*system.notices)
        return ""


class RestoreNotice(msgspec.Struct, frozen=True, gc=False):
    """Show a notification of the history again."""

    notice: int

    def apply(self, device: Device) -> str:
        device.system = system_of(device).put_back(self.notice)
        return ""


class Grant(msgspec.Struct, frozen=True, gc=False):
    """Answer a question for a permission, or change the answer in the settings."""

    key: str
    value: Literal["allow", "once", "deny", "ask"]

    def apply(self, device: Device) -> str:
        device.system = system_of(device).granted(self.key, self.value)
        return ""


class AnswerInterruption(msgspec.Struct, frozen=True, gc=False):
    """Answer an interruption: do what it offers, or send it away."""

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
    """Bring a value back to the form that asked for it."""

    field: str
    value: str

    def apply(self, device: Device) -> str:
        device.show(device.stack[:-1], {**device.draft, self.field: self.value})
        return ""


class Share(msgspec.Struct, frozen=True):
    """Take a value to a form of another app."""

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
    """Move a file from the trash to where it was."""

    row: int

    def apply(self, device: Device) -> str:
        was = device.tables["file"][self.row]["was"]
        device.update("file", self.row, {"folder": was, "was": ""})
        device.show(device.stack[:-1])
        device.toast = "restored"
        return ""


class SaveCapture(msgspec.Struct, frozen=True, gc=False):
    """Save what camera or microphone took, as the form in front says."""

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
    """Save the file of a web page; a notification tells."""

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
