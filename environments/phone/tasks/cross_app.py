"""Tasks across apps: look a value up (a tap copies it), then write it elsewhere."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.apps.record_apps import ALARM, CONTACT, EVENT, EXPENSE, NOTE, TASK
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Create, Goal, Source
from swarm_ui.environments.phone.tasks.task_kinds import check, random_row, values
from swarm_ui.environments.phone.tasks.template import Template, TemplateSplit, template


def copy_value(
    name: str, split: TemplateSplit, origin: tuple[Table, str], into: tuple[Table, str], *given: str
) -> Template:
    """Copy a field of a record of one table into a field of a new record of another table.

    Args:
        name, split: of the template.
        origin: the table and the field to copy from.
        into: the table and the field to copy to.
        given: other fields of the new record; the goal gives them.
    """
    (source_table, field), (table, slot) = origin, into

    def make(sampler: Sampler, device: Device) -> Goal:
        row = random_row(sampler, device, source_table)
        found = device.tables[source_table.name][row]
        words = values(sampler, table, given)
        source = Source(table=source_table.name, row=row, field=field, value=found[field])
        want = Create(table=table.name, fields={slot: found[field], **words}, source=source)
        title = source_table.title
        return Goal(words={f"the_{title}": found[title], **words}, wants=(want,))

    apps = f"{source_table.app} {table.app}"
    return template(split, name, make, 8 + len(given), apps, "across form")


_phone_to_message = copy_value(
    "phone-to-message", "train", (CONTACT, "phone"), (MESSAGE, "text"), "to"
).phrased(
    "copy the phone of the contact {the_name} and send it in a message to {to}",
    "message {to} the phone of {the_name} from contacts",
)
_check_task = check("tasks-check", "train", TASK, 1)


def _phone_message_task(sampler: Sampler, device: Device) -> Goal:
    one, two = _phone_to_message.make(sampler, device), _check_task.make(sampler, device)
    return Goal(words={**one.words, **two.words}, wants=(*one.wants, *two.wants))


TEMPLATES = (
    _phone_to_message,
    copy_value("amount-to-note", "train", (EXPENSE, "amount"), (NOTE, "body"), "title").phrased(
        "copy the amount of the expense {the_item} into the body of a new note with title {title}",
        "write a note titled {title} with the amount of the expense {the_item} as body",
    ),
    copy_value("event-to-alarm", "new_templates", (EVENT, "time"), (ALARM, "time")).phrased(
        "copy the time of the calendar event {the_title} and set a new alarm with it in the clock",
        "create an alarm for the time of the event {the_title} in the calendar",
    ),
    copy_value("message-to-note", "validation", (MESSAGE, "text"), (NOTE, "body"), "title").phrased(
        "copy the text of the message to {the_to} into the body of a new note with title {title}",
        "write a note titled {title} with the text of the message to {the_to} as body",
    ),
    template(
        "new_templates",
        "phone-message-task",
        _phone_message_task,
        12,
        "contacts messages tasks",
        "across form check several",
    ).phrased(
        "copy the phone of the contact {the_name} and send it in a message to {to} , then "
        "check the task {task}",
        "message {to} the phone of {the_name} from contacts and tick off {task} in tasks",
    ),
)
