"""Tasks across apps: look a value up (a tap copies it), then write it elsewhere."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.calendar import EVENT
from swarm_ui.environments.phone.apps.clock import ALARM
from swarm_ui.environments.phone.apps.contacts import CONTACT
from swarm_ui.environments.phone.apps.expenses import EXPENSE
from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.apps.notes import NOTE
from swarm_ui.environments.phone.apps.tasks import TASK
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Create, Goal, Source
from swarm_ui.environments.phone.tasks.task_kinds import random_row, sample, tick
from swarm_ui.environments.phone.tasks.template import Make, Template


def copy_value(origin: Table, field: str, into: Table, slot: str, *given: str) -> Make:
    """A new record in ``into`` whose ``slot`` holds ``field`` of a record of ``origin``."""

    def make(sampler: Sampler, device: Device) -> Goal:
        row = random_row(sampler, device, origin)
        found = device.tables[origin.name][row]
        record = sample(sampler, into)
        words = {name: record[name] for name in given}
        fields = {slot: found[field], **words}
        source = Source(table=origin.name, row=row, field=field, value=found[field])
        want = Create(table=into.name, fields=fields, source=source)
        return Goal(words={f"the_{origin.title}": found[origin.title], **words}, wants=(want,))

    return make


_phone_to_message = copy_value(CONTACT, "phone", MESSAGE, "text", "to")


_one_task = tick(TASK, 1)


def _phone_to_message_and_task(sampler: Sampler, device: Device) -> Goal:
    one, two = _phone_to_message(sampler, device), _one_task(sampler, device)
    return Goal(words={**one.words, **two.words}, wants=(*one.wants, *two.wants))


TEMPLATES = (
    Template(
        name="phone-to-message",
        apps=("contacts", "messages"),
        split="train",
        steps=9,
        goals=(
            "copy the phone of the contact {the_name} and send it in a message to {to}",
            "message {to} the phone of {the_name} from contacts",
        ),
        make=_phone_to_message,
        tags=("across", "form"),
    ),
    Template(
        name="amount-to-note",
        apps=("expenses", "notes"),
        split="train",
        steps=9,
        goals=(
            "copy the amount of the expense {the_item} into the body of a new note with title "
            "{title}",
            "write a note titled {title} with the amount of the expense {the_item} as body",
        ),
        make=copy_value(EXPENSE, "amount", NOTE, "body", "title"),
        tags=("across", "form"),
    ),
    Template(
        name="event-to-alarm",
        apps=("calendar", "clock"),
        split="new_templates",
        steps=8,
        goals=(
            "copy the time of the calendar event {the_title} and set a new alarm with it in the "
            "clock",
            "create an alarm for the time of the event {the_title} in the calendar",
        ),
        make=copy_value(EVENT, "time", ALARM, "time"),
        tags=("across", "form"),
    ),
    Template(
        name="message-to-note",
        apps=("messages", "notes"),
        split="validation",
        steps=9,
        goals=(
            "copy the text of the message to {the_to} into the body of a new note with title "
            "{title}",
            "write a note titled {title} with the text of the message to {the_to} as body",
        ),
        make=copy_value(MESSAGE, "text", NOTE, "body", "title"),
        tags=("across", "form"),
    ),
    Template(
        name="phone-message-task",
        apps=("contacts", "messages", "tasks"),
        split="new_templates",
        steps=12,
        goals=(
            "copy the phone of the contact {the_name} and send it in a message to {to} , then "
            "check the task {task}",
            "message {to} the phone of {the_name} from contacts and tick off {task} in tasks",
        ),
        make=_phone_to_message_and_task,
        tags=("across", "form", "check", "several"),
    ),
)
