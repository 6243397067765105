"""Messages: short texts; each can be read, answered and deleted, none can be edited."""

from __future__ import annotations

from swarm_ui.environments.phone.app import App
from swarm_ui.environments.phone.device import Device
from swarm_ui.environments.phone.draw import Draw
from swarm_ui.environments.phone.effects import Go
from swarm_ui.environments.phone.effects import Insert as Send
from swarm_ui.environments.phone.records import form, record_screen
from swarm_ui.environments.phone.schema import Field, Table
from swarm_ui.environments.phone.screen import Path, Screen, Widget

MESSAGE = Table(
    name="message",
    app="messages",
    fields=(Field("to"), Field("text")),
    trail=(Screen("messages"),),
    add="compose",
    save="send",
    edit="",
)


def reply_path(row: int) -> Path:
    """Screens to the answer to a message."""
    return (*MESSAGE.path("detail", row), MESSAGE.screen("reply", row))


def build(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "reply":
        return form(MESSAGE, device.draft, Send(MESSAGE))
    widgets = record_screen(device, MESSAGE, screen)
    if screen.kind == "detail":
        draft = {"to": device.tables["message"][screen.row]["to"]}
        widgets.append(Widget("button", "reply", effect=Go(reply_path(screen.row)[-1], draft)))
    return widgets


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {"to": draw.first(), "text": draw.phrase(2)}


MESSAGES = App(name="messages", build=build, record=record, tables=(MESSAGE,))
