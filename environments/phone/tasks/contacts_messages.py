"""Tasks with contacts and messages."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.messages import MESSAGE, reply_path
from swarm_ui.environments.phone.apps.record_apps import CONTACT
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Create, Delete, Goal
from swarm_ui.environments.phone.tasks.task_kinds import (
    create,
    delete,
    deletion_texts,
    edit,
    in_long_list,
    missing,
    random_row,
    read,
    sample,
    toggle,
    values,
)
from swarm_ui.environments.phone.tasks.template import template


def _delete_similar(sampler: Sampler, device: Device) -> Goal:
    """Delete a contact; another one has the same first name."""
    row = random_row(sampler, device, CONTACT)
    name = device.tables["contact"][row]["name"]
    twin = {**sample(sampler, CONTACT), "name": sampler.full_name(name.split()[0])}
    device.insert("contact", twin)
    return Goal(words={"name": name}, wants=(Delete(table="contact", row=row),))


def _send_two(sampler: Sampler, device: Device) -> Goal:
    one, two = (values(sampler, MESSAGE, ("to", "text")) for _ in range(2))
    wants = tuple(Create(table="message", fields=fields) for fields in (one, two))
    return Goal(words={**one, **{f"{k}2": v for k, v in two.items()}}, wants=wants)


def _reply(sampler: Sampler, device: Device) -> Goal:
    row = random_row(sampler, device, MESSAGE)
    fields = {"to": device.tables["message"][row]["to"], "text": sampler.phrase(2)}
    want = Create(table="message", fields=fields, path=reply_path(row))
    return Goal(words=fields, wants=(want,))


CONTACT_TEMPLATES = (
    create("contacts-add", "train", CONTACT, "name", "phone").phrased(
        "add a contact with name {name} and phone {phone}",
        "create a contact named {name} with phone {phone}",
        "save {name} in contacts with phone {phone}",
    ),
    create("contacts-add-email", "new_templates", CONTACT, "name", "phone", "email").phrased(
        "add a contact with name {name} , phone {phone} and email {email}",
        "create a contact named {name} with phone {phone} and email {email}",
    ),
    delete("contacts-delete", "train", CONTACT),
    template(
        "validation", "contacts-delete-similar", _delete_similar, 4, "contacts", "delete misleading"
    ).phrased(*deletion_texts(CONTACT)),
    missing("contacts-delete-missing", "train", CONTACT),
    edit("contacts-edit-phone", "train", CONTACT, "phone"),
    toggle("contacts-favorite", "train", CONTACT),
    read("contacts-phone", "train", CONTACT, "phone"),
    in_long_list(read("contacts-phone-far", "train", CONTACT, "phone")),
)
MESSAGE_TEMPLATES = (
    create("messages-send", "train", MESSAGE, "to", "text").phrased(
        "compose a message to {to} with text {text}",
        "send a message to {to} with text {text}",
        "message {to} the text {text}",
    ),
    template(
        "new_templates", "messages-send-two", _send_two, 9, "messages", "form several"
    ).phrased(
        "send a message to {to} with text {text} and a message to {to2} with text {text2}",
        "message {to} the text {text} and message {to2} the text {text2}",
    ),
    delete("messages-delete", "train", MESSAGE).phrased(
        "delete the message to {to}", "delete what was sent to {to} in messages"
    ),
    template("train", "messages-reply", _reply, 5, "messages", "form").phrased(
        "reply to the message of {to} with text {text}", "open the message of {to} and reply {text}"
    ),
    read("messages-read", "train", MESSAGE, "text").phrased(
        "what is the text of the message to {to}", "answer with the text that {to} has in messages"
    ),
)
TEMPLATES = CONTACT_TEMPLATES + MESSAGE_TEMPLATES
