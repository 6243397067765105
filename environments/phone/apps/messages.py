"""Messages: short texts; each can be read, answered and deleted, none can be edited."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.record_screens import (
    PAGE,
    UNPAGED_ROWS,
    form,
    pages_of,
    record_screen,
)
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go
from swarm_ui.environments.phone.device.effects import Insert as Send
from swarm_ui.environments.phone.device.full_effects import PickValue
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen, Widget
from swarm_ui.environments.phone.parameters import Sampler

MESSAGE = Table(
    name="message",
    app="messages",
    fields=(
        Field("to", sample=Sampler.first_name),
        Field("text", sample=Sampler.phrase),
    ),
    trail=(Screen("messages"),),
    add="compose",
    save="send",
    edit="",
)
PICK = Screen("messages", "pick")
"""On a whole phone: the contacts, to choose one from."""


def reply_path(row: int) -> Path:
    """Screens to the answer to a message."""
    return (*MESSAGE.path("detail", row), MESSAGE.screen("reply", row))


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "reply":
        return form(MESSAGE, device.draft, Send(MESSAGE))
    if screen.kind == "pick":
        return _pick(device)
    widgets = record_screen(device, MESSAGE, screen)
    if screen.kind == "new" and device.system is not None and "contacts" in device.installed:
        choose = Widget("button", "choose contact", effect=Go(PICK, device.draft))
        widgets.insert(1, choose)
    if screen.kind == "detail":
        draft = {"to": device.tables["message"][screen.row]["to"]}
        widgets.append(Widget("button", "reply", effect=Go(reply_path(screen.row)[-1], draft)))
    return widgets


def _pick(device: Device) -> list[Widget]:
    """Contacts, to fill in who a message goes to."""
    rows = list(device.tables["contact"].values())
    if long := len(rows) > UNPAGED_ROWS:
        rows = rows[device.page * PAGE : (device.page + 1) * PAGE]
    widgets = [Widget("item", row["name"], effect=PickValue("to", row["name"])) for row in rows]
    if long:
        widgets.append(Widget("label", "more", scrollable=True))
    return widgets or [Widget("label", "empty")]


def _last(device: Device, screen: Screen) -> int:
    return pages_of(len(device.tables["contact"])) - 1 if screen == PICK else 0


MESSAGES = App(
    name="messages",
    widgets=widgets,
    tables=(MESSAGE,),
    needs={"pick": "contacts"},
    last=_last,
)
