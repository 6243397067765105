"""Messages: short texts that can be read, answered and deleted, but not edited."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import (
    App,
    form,
    last_page_of,
    paged,
    record_screen,
)
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go, Insert, PickValue
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget
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
"""The screen on which a contact is chosen; only on a full device."""


def reply_path(row: int) -> Path:
    """The screens that lead to the answer to a message."""
    return (*MESSAGE.path("detail", row), MESSAGE.screen("reply", row))


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "reply":
        return form(MESSAGE, device.draft, Insert(MESSAGE))
    if screen.kind == "pick":
        return _pick(device)
    shown = record_screen(device, MESSAGE, screen)
    if screen.kind == "new" and device.system is not None and "contacts" in device.installed:
        choose = Widget("button", "choose contact", effect=Go(PICK, device.draft))
        shown.insert(1, choose)
    if screen.kind == "detail":
        draft = {"to": device.tables["message"][screen.row]["to"]}
        shown.append(Widget("button", "reply", effect=Go(reply_path(screen.row)[-1], draft)))
    return shown


def _pick(device: Device) -> list[Widget]:
    """The contacts; a tap fills in the receiver of a message."""
    names = [row["name"] for row in device.tables["contact"].values()]
    return paged(device, [Widget("item", name, effect=PickValue("to", name)) for name in names])


def _last(device: Device, screen: Screen) -> int:
    return last_page_of(len(device.tables["contact"])) if screen == PICK else 0


MESSAGES = App(
    name="messages",
    widgets=widgets,
    tables=(MESSAGE,),
    needs={"pick": "contacts"},
    last=_last,
)
