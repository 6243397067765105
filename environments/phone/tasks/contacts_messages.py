"""Tasks with contacts and messages."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.contacts import CONTACT
from swarm_ui.environments.phone.apps.messages import MESSAGE, reply_path
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Create, Delete, Goal
from swarm_ui.environments.phone.tasks.task_kinds import (
    create,
    create_two,
    delete,
    edit,
    flip,
    missing,
    random_row,
    read,
    sample,
)
from swarm_ui.environments.phone.tasks.template import Template


def _delete_similar(sampler: Sampler, device: Device) -> Goal:
    """Another person has the same first name."""
    row = random_row(sampler, device, CONTACT)
    name = device.tables["contact"][row]["name"]
    twin = {**sample(sampler, CONTACT), "name": sampler.full_name(name.split()[0])}
    device.insert("contact", twin)
    return Goal(words={"name": name}, wants=(Delete(table="contact", row=row),))


def _reply(sampler: Sampler, device: Device) -> Goal:
    row = random_row(sampler, device, MESSAGE)
    fields = {"to": device.tables["message"][row]["to"], "text": sampler.phrase(2)}
    want = Create(table="message", fields=fields, path=reply_path(row))
    return Goal(words=fields, wants=(want,))


_CONTACTS, _MESSAGES = ("contacts",), ("messages",)
CONTACT_TEMPLATES = (
    Template(
        name="contacts-add",
        apps=_CONTACTS,
        split="train",
        steps=5,
        goals=(
            "add a contact with name {name} and phone {phone}",
            "create a contact named {name} with phone {phone}",
            "save {name} in contacts with phone {phone}",
        ),
        make=create(CONTACT, "name", "phone"),
        tags=("form",),
    ),
    Template(
        name="contacts-add-email",
        apps=_CONTACTS,
        split="new_templates",
        steps=6,
        goals=(
            "add a contact with name {name} , phone {phone} and email {email}",
            "create a contact named {name} with phone {phone} and email {email}",
        ),
        make=create(CONTACT, "name", "phone", "email"),
        tags=("form",),
    ),
    Template(
        name="contacts-delete",
        apps=_CONTACTS,
        split="train",
        steps=4,
        goals=("delete the contact {name}", "delete {name} from contacts"),
        make=delete(CONTACT),
        tags=("delete",),
    ),
    Template(
        name="contacts-delete-similar",
        apps=_CONTACTS,
        split="validation",
        steps=4,
        goals=("delete the contact {name}", "delete {name} from contacts"),
        make=_delete_similar,
        tags=("delete", "misleading"),
    ),
    Template(
        name="contacts-delete-missing",
        apps=_CONTACTS,
        split="train",
        steps=1,
        goals=("delete the contact {name}", "delete {name} from contacts"),
        make=missing(CONTACT),
        tags=("infeasible",),
    ),
    Template(
        name="contacts-edit-phone",
        apps=_CONTACTS,
        split="train",
        steps=5,
        goals=(
            "edit the contact {name} and set phone to {phone}",
            "change the phone of {name} in contacts to {phone}",
        ),
        make=edit(CONTACT, "phone"),
        tags=("edit",),
    ),
    Template(
        name="contacts-favorite",
        apps=_CONTACTS,
        split="train",
        steps=3,
        goals=(
            "turn {state} favorite for the contact {name}",
            "switch favorite {state} for {name} in contacts",
        ),
        make=flip(CONTACT),
        tags=("toggle",),
    ),
    Template(
        name="contacts-phone",
        apps=_CONTACTS,
        split="train",
        steps=3,
        goals=(
            "what is the phone of the contact {name}",
            "answer with the phone of {name} in contacts",
        ),
        make=read(CONTACT, "phone"),
        tags=("answer",),
    ),
    Template(
        name="contacts-phone-far",
        apps=_CONTACTS,
        split="train",
        steps=4,
        goals=(
            "what is the phone of the contact {name}",
            "answer with the phone of {name} in contacts",
        ),
        make=read(CONTACT, "phone"),
        tags=("answer", "scroll"),
        rows=(9, 12),
    ),
)
MESSAGE_TEMPLATES = (
    Template(
        name="messages-send",
        apps=_MESSAGES,
        split="train",
        steps=5,
        goals=(
            "compose a message to {to} with text {text}",
            "send a message to {to} with text {text}",
            "message {to} the text {text}",
        ),
        make=create(MESSAGE, "to", "text"),
        tags=("form",),
    ),
    Template(
        name="messages-send-two",
        apps=_MESSAGES,
        split="new_templates",
        steps=9,
        goals=(
            "send a message to {to} with text {text} and a message to {to2} with text {text2}",
            "message {to} the text {text} and message {to2} the text {text2}",
        ),
        make=create_two(MESSAGE, "to", "text"),
        tags=("form", "several"),
    ),
    Template(
        name="messages-delete",
        apps=_MESSAGES,
        split="train",
        steps=4,
        goals=("delete the message to {to}", "delete what was sent to {to} in messages"),
        make=delete(MESSAGE),
        tags=("delete",),
    ),
    Template(
        name="messages-reply",
        apps=_MESSAGES,
        split="train",
        steps=5,
        goals=(
            "reply to the message of {to} with text {text}",
            "open the message of {to} and reply {text}",
        ),
        make=_reply,
        tags=("form",),
    ),
    Template(
        name="messages-read",
        apps=_MESSAGES,
        split="train",
        steps=3,
        goals=(
            "what is the text of the message to {to}",
            "answer with the text that {to} has in messages",
        ),
        make=read(MESSAGE, "text"),
        tags=("answer",),
    ),
)
TEMPLATES = CONTACT_TEMPLATES + MESSAGE_TEMPLATES
