"""Tasks with the system UI: drawer, notifications, permissions, interruptions."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.environments.phone.apps.messages import MESSAGE, reply_path
from swarm_ui.environments.phone.apps.record_apps import CONTACT, EVENT, EXPENSE
from swarm_ui.environments.phone.device.device import (
    DRAWER,
    SHADE,
    Device,
    Interruption,
    InterruptionKind,
    Notice,
)
from swarm_ui.environments.phone.device.effects import system_of
from swarm_ui.environments.phone.device.screen import Path
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import (
    AppInFront,
    Configure,
    Create,
    Dismiss,
    Goal,
    Permit,
)
from swarm_ui.environments.phone.tasks.task_kinds import add_record, create, edit
from swarm_ui.environments.phone.tasks.template import (
    Make,
    Template,
    extended_templates,
    extended_train,
    extended_validation,
)

_NO_APP = ("bank", "atlas", "chess", "diary", "fitness", "email")


def notify(sampler: Sampler, device: Device, app: str, text: str, path: Path) -> int:
    """Add a notification to the device; returns its identity."""
    key = device.next_row
    device.next_row = key + 1
    device.system = system_of(device).notified(key, Notice(app, sampler.noun(), text, path))
    return key


def interrupted(
    base: Template, kind: InterruptionKind, *, app: str = "", tags: tuple[str, ...] = ()
) -> Template:
    """A template for the same task, interrupted by a dialog."""

    def make(sampler: Sampler, device: Device) -> Goal:
        goal = base.make(sampler, device)
        one = Interruption(kind=kind, due=sampler.pick((1, 2)), app=app)
        device.system = msgspec.structs.replace(system_of(device), pending=(one,))
        return goal

    tags = (*base.tags, "interrupted", *tags)
    return msgspec.structs.replace(base, make=make, steps=base.steps + 2, tags=tags)


def open_hidden(sampler: Sampler, device: Device) -> Goal:
    """Task: open an app that is only in the drawer."""
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
    """Task: reply to the message of a notification."""
    key, row = add_record(MESSAGE, sampler, device)
    notify(sampler, device, "messages", f"{row['to']} : {row['text']}", MESSAGE.path("detail", key))
    fields = {"to": row["to"], "text": sampler.phrase(2)}
    want = Create(table="message", fields=fields, path=reply_path(key))
    return Goal(words=fields, wants=(want,))


def _stale(sampler: Sampler, device: Device) -> Goal:
    """Task: answer with the time of an event; a notification shows an outdated time."""
    key, row = add_record(EVENT, sampler, device)
    path = EVENT.path("detail", key)
    notify(sampler, device, "calendar", f"{row['title']} at {sampler.time()}", path)
    return Goal(words={"title": row["title"]}, answer=row["time"], look=path)


def _permit(value: Literal["allow", "deny"]) -> Make:
    def make(sampler: Sampler, device: Device) -> Goal:
        system = system_of(device)
        before = "deny" if value == "allow" else "allow"
        keys = ("camera camera", "messages contacts")
        device.system = system.granted(keys[0], before).granted(keys[1], before)
        key = sampler.pick(keys)
        app, permission = key.split(" ")
        want = Permit(key=key, value=value)
        return Goal(words={"app": app, "permission": permission}, wants=(want,))

    return make


def _saver(sampler: Sampler, device: Device) -> Goal:
    key = sampler.pick(("battery saver", "adaptive battery"))
    return Goal(words={"switch": key}, wants=(Configure(key=key, value="on"),))


TEMPLATES = (
    extended_train("drawer-open", open_hidden, 2, "", "open drawer").phrased(
        "open the {app} app", "find {app} among all apps and open it"
    ),
    extended_train("drawer-missing", _no_app, 1, "", "infeasible drawer").phrased(
        "open the {app} app", "find {app} among all apps and open it"
    ),
    extended_train("status-battery", _battery, 1, "", "answer").phrased(
        "how many percent has the battery", "answer with the battery level in percent"
    ),
    extended_train(
        "notice-read", _read, 2, "messages calendar tasks", "answer notification"
    ).phrased(
        "what does the {app} notification {title} say",
        "read the notification {title} of {app} and answer with its text",
    ),
    extended_train(
        "notice-dismiss", _dismiss, 2, "messages calendar tasks", "notification"
    ).phrased(
        "dismiss the {app} notification {title}",
        "remove the notification {title} of {app} and keep the others",
    ),
    extended_templates(
        "notice-clear", _clear, 3, "messages calendar tasks", "notification"
    ).phrased("clear all notifications", "dismiss every notification"),
    extended_validation("notice-reply", _reply, 6, "messages", "notification form").phrased(
        "open the notification about the message of {to} and reply {text}",
        "answer the message of {to} that a notification tells of with {text}",
    ),
    extended_templates(
        "notice-stale", _stale, 4, "calendar", "answer misleading notification"
    ).phrased(
        "what time does the calendar have for the event {title} , notifications may be old",
        "answer with the time of the event {title} as the calendar has it now",
    ),
    extended_train(
        "permission-allow", _permit("allow"), 5, "camera messages", "permission choice"
    ).phrased(
        "in the permissions settings allow {permission} for {app}",
        "give {app} the {permission} permission in settings",
    ),
    extended_templates(
        "permission-deny", _permit("deny"), 5, "camera messages", "permission choice"
    ).phrased(
        "in the permissions settings deny {permission} for {app}",
        "take the {permission} permission away from {app} in settings",
    ),
    extended_train("battery-switch", _saver, 4, "settings", "toggle").phrased(
        "turn on {switch} in the battery settings", "switch {switch} on in settings"
    ),
    interrupted(
        create("contact-interrupted", "extended_train", CONTACT, "name", "phone"), "update"
    ).phrased(
        "add a contact with name {name} and phone {phone}",
        "save {name} in contacts with phone {phone}",
    ),
    interrupted(
        create("message-interrupted", "extended_templates", MESSAGE, "to", "text"),
        "rating",
        app="messages",
    ).phrased("send a message to {to} with text {text}", "message {to} the text {text}"),
    interrupted(
        edit("expense-interrupted", "extended_validation", EXPENSE, "amount"),
        "battery",
        tags=("misleading",),
    ),
)
