"""Tasks with what is system the apps: drawer, notifications, permissions, interruptions."""

from __future__ import annotations

import msgspec

from swarm_ui.environments.phone.apps.calendar import EVENT
from swarm_ui.environments.phone.apps.contacts import CONTACT
from swarm_ui.environments.phone.apps.expenses import EXPENSE
from swarm_ui.environments.phone.apps.messages import MESSAGE, reply_path
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_effects import system_of
from swarm_ui.environments.phone.device.screen import Path
from swarm_ui.environments.phone.device.system import DRAWER, SHADE, Interruption, Notice
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import (
    AppInFront,
    Configure,
    Create,
    Dismiss,
    Goal,
    Permit,
)
from swarm_ui.environments.phone.tasks.task_kinds import create, edit, sample
from swarm_ui.environments.phone.tasks.template import Make, Template

_NO_APP = ("bank", "atlas", "chess", "diary", "fitness", "email")


def notify(sampler: Sampler, device: Device, app: str, text: str, path: Path) -> int:
    """Put a notification into the shade."""
    key = device.next_row
    device.next_row = key + 1
    device.system = system_of(device).notified(key, Notice(app, sampler.noun(), text, path))
    return key


def interrupted(make: Make, kind: str, app: str = "") -> Make:
    """The same task with a dialog that comes up before it is done."""

    def made(sampler: Sampler, device: Device) -> Goal:
        goal = make(sampler, device)
        one = Interruption(kind=kind, due=sampler.pick((1, 2)), app=app)  # type: ignore[arg-type]
        device.system = msgspec.structs.replace(system_of(device), pending=(one,))
        return goal

    return made


def _open_hidden(sampler: Sampler, device: Device) -> Goal:
    """An app that is only in the drawer."""
    favorites = system_of(device).favorites
    app = sampler.pick([name for name in device.installed if name not in favorites])
    return Goal(words={"app": app}, wants=(AppInFront(app=app),))


def _no_app(sampler: Sampler, device: Device) -> Goal:
    return Goal(words={"app": sampler.pick(_NO_APP)}, look=(DRAWER,), infeasible=True)


def _battery(sampler: Sampler, device: Device) -> Goal:
    return Goal(words={}, answer=system_of(device).battery)


def _read(sampler: Sampler, device: Device) -> Goal:
    key = sampler.pick(list(system_of(device).notices))
    notice = system_of(device).notices[key]
    words = {"app": notice.app, "title": notice.title}
    return Goal(words=words, answer=notice.text, look=(SHADE,))


def _dismiss(sampler: Sampler, device: Device) -> Goal:
    key = sampler.pick(list(system_of(device).notices))
    notice = system_of(device).notices[key]
    words = {"app": notice.app, "title": notice.title}
    return Goal(words=words, wants=(Dismiss(notice=key),))


def _clear(sampler: Sampler, device: Device) -> Goal:
    return Goal(words={}, wants=tuple(Dismiss(notice=key) for key in system_of(device).notices))


def _reply(sampler: Sampler, device: Device) -> Goal:
    """The message that a notification is about is answered."""
    row = sample(sampler, MESSAGE)
    key = device.insert("message", row)
    notify(sampler, device, "messages", f"{row['to']} : {row['text']}", MESSAGE.path("detail", key))
    fields = {"to": row["to"], "text": sampler.phrase(2)}
    want = Create(table="message", fields=fields, path=reply_path(key))
    return Goal(words=fields, wants=(want,))


def _stale(sampler: Sampler, device: Device) -> Goal:
    """A notification still tells the time that the event had before it was moved."""
    row = sample(sampler, EVENT)
    key = device.insert("event", row)
    path = EVENT.path("detail", key)
    notify(sampler, device, "calendar", f"{row['title']} at {sampler.time()}", path)
    return Goal(words={"title": row["title"]}, answer=row["time"], look=path)


def _permit(value: str) -> Make:
    def make(sampler: Sampler, device: Device) -> Goal:
        system = system_of(device)
        before = "deny" if value == "allow" else "allow"
        keys = ("camera camera", "messages contacts")
        device.system = system.granted(keys[0], before).granted(keys[1], before)
        key = sampler.pick(keys)
        app, permission = key.split(" ")
        want = Permit(key=key, value=value)  # type: ignore[arg-type]
        return Goal(words={"app": app, "permission": permission}, wants=(want,))

    return make


def _saver(sampler: Sampler, device: Device) -> Goal:
    key = sampler.pick(("battery saver", "adaptive battery"))
    return Goal(words={"switch": key}, wants=(Configure(key=key, value="on"),))


SHELL_TEMPLATES = (
    Template(
        name="drawer-open",
        apps=(),
        split="extended_train",
        steps=2,
        goals=("open the {app} app", "find {app} among all apps and open it"),
        make=_open_hidden,
        tags=("open", "drawer"),
    ),
    Template(
        name="drawer-missing",
        apps=(),
        split="extended_train",
        steps=1,
        goals=("open the {app} app", "find {app} among all apps and open it"),
        make=_no_app,
        tags=("infeasible", "drawer"),
    ),
    Template(
        name="status-battery",
        apps=(),
        split="extended_train",
        steps=1,
        goals=(
            "how many percent has the battery",
            "answer with the battery level in percent",
        ),
        make=_battery,
        tags=("answer",),
    ),
    Template(
        name="notice-read",
        apps=("messages", "calendar", "tasks"),
        split="extended_train",
        steps=2,
        goals=(
            "what does the {app} notification {title} say",
            "read the notification {title} of {app} and answer with its text",
        ),
        make=_read,
        tags=("answer", "notification"),
    ),
    Template(
        name="notice-dismiss",
        apps=("messages", "calendar", "tasks"),
        split="extended_train",
        steps=2,
        goals=(
            "dismiss the {app} notification {title}",
            "remove the notification {title} of {app} and keep the others",
        ),
        make=_dismiss,
        tags=("notification",),
    ),
    Template(
        name="notice-clear",
        apps=("messages", "calendar", "tasks"),
        split="extended_templates",
        steps=3,
        goals=("clear all notifications", "dismiss every notification"),
        make=_clear,
        tags=("notification",),
    ),
    Template(
        name="notice-reply",
        apps=("messages",),
        split="extended_validation",
        steps=6,
        goals=(
            "open the notification about the message of {to} and reply {text}",
            "answer the message of {to} that a notification tells of with {text}",
        ),
        make=_reply,
        tags=("notification", "form"),
    ),
    Template(
        name="notice-stale",
        apps=("calendar",),
        split="extended_templates",
        steps=4,
        goals=(
            "what time does the calendar have for the event {title} , notifications may be old",
            "answer with the time of the event {title} as the calendar has it now",
        ),
        make=_stale,
        tags=("answer", "misleading", "notification"),
    ),
    Template(
        name="permission-allow",
        apps=("camera", "messages"),
        split="extended_train",
        steps=5,
        goals=(
            "in the permissions settings allow {permission} for {app}",
            "give {app} the {permission} permission in settings",
        ),
        make=_permit("allow"),
        tags=("permission", "choice"),
    ),
    Template(
        name="permission-deny",
        apps=("camera", "messages"),
        split="extended_templates",
        steps=5,
        goals=(
            "in the permissions settings deny {permission} for {app}",
            "take the {permission} permission away from {app} in settings",
        ),
        make=_permit("deny"),
        tags=("permission", "choice"),
    ),
    Template(
        name="battery-switch",
        apps=("settings",),
        split="extended_train",
        steps=4,
        goals=("turn on {switch} in the battery settings", "switch {switch} on in settings"),
        make=_saver,
        tags=("toggle",),
    ),
)
INTERRUPTED_TEMPLATES = (
    Template(
        name="contact-interrupted",
        apps=("contacts",),
        split="extended_train",
        steps=7,
        goals=(
            "add a contact with name {name} and phone {phone}",
            "save {name} in contacts with phone {phone}",
        ),
        make=interrupted(create(CONTACT, "name", "phone"), "update"),
        tags=("form", "interrupted"),
    ),
    Template(
        name="message-interrupted",
        apps=("messages",),
        split="extended_templates",
        steps=7,
        goals=(
            "send a message to {to} with text {text}",
            "message {to} the text {text}",
        ),
        make=interrupted(create(MESSAGE, "to", "text"), "rating", "messages"),
        tags=("form", "interrupted"),
    ),
    Template(
        name="expense-interrupted",
        apps=("expenses",),
        split="extended_validation",
        steps=7,
        goals=(
            "edit the expense {item} and set amount to {amount}",
            "change the amount of {item} in expenses to {amount}",
        ),
        make=interrupted(edit(EXPENSE, "amount"), "battery"),
        tags=("edit", "interrupted", "misleading"),
    ),
)
TEMPLATES = SHELL_TEMPLATES + INTERRUPTED_TEMPLATES
