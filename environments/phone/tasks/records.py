"""Tasks about records on the core device, in one app or in several.

The tasks with recipes and music, at the end, are not used in training.
"""

from __future__ import annotations

from swarm_ui.environments.phone.apps.messages import MESSAGE, reply_path
from swarm_ui.environments.phone.apps.record_apps import (
    ALARM,
    CONTACT,
    EVENT,
    EXPENSE,
    MODES,
    NOTE,
    PLAYLIST,
    RECIPE,
    TASK,
    TIMER,
)
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Create, Delete, Goal, Source
from swarm_ui.environments.phone.tasks.task_kinds import (
    check,
    create,
    delete,
    deletion_texts,
    edit,
    in_long_list,
    missing,
    random_row,
    read,
    sample,
    switch,
    toggle,
    values,
)
from swarm_ui.environments.phone.tasks.template import Template, TemplateSplit, template


def _delete_similar(sampler: Sampler, device: Device) -> Goal:
    """Task: delete a contact; another contact has the same first name."""
    key, row = random_row(CONTACT, sampler, device)
    name = row["name"]
    twin = {**sample(sampler, CONTACT), "name": sampler.full_name(name.split()[0])}
    device.insert("contact", twin)
    return Goal(words={"name": name}, wants=(Delete(table="contact", row=key),))


def _send_two(sampler: Sampler, device: Device) -> Goal:
    one, two = (values(sampler, MESSAGE, ("to", "text")) for _ in range(2))
    wants = tuple(Create(table="message", fields=fields) for fields in (one, two))
    return Goal(words={**one, **{f"{k}2": v for k, v in two.items()}}, wants=wants)


def _reply(sampler: Sampler, device: Device) -> Goal:
    key, row = random_row(MESSAGE, sampler, device)
    fields = {"to": row["to"], "text": sampler.phrase(2)}
    want = Create(table="message", fields=fields, path=reply_path(key))
    return Goal(words=fields, wants=(want,))


def copy_value(
    name: str, split: TemplateSplit, origin: tuple[Table, str], into: tuple[Table, str], *given: str
) -> Template:
    """Look a field up (a tap copies it), then write it into a new record of another table.

    The goal states the values of the new record's fields that ``given`` names.
    """
    (source_table, field), (table, slot) = origin, into

    def make(sampler: Sampler, device: Device) -> Goal:
        key, found = random_row(source_table, sampler, device)
        words = values(sampler, table, given)
        source = Source.of(source_table, key, found, field)
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
    create("clock-alarm", "train", ALARM, "time").phrased(
        "set a new alarm with time {time} in the clock",
        "create an alarm for time {time}",
        "add a clock alarm at {time}",
    ),
    create("clock-alarm-label", "new_templates", ALARM, "time", "label").phrased(
        "set a new alarm with time {time} and label {label} in the clock",
        "create an alarm for time {time} with label {label}",
    ),
    toggle("clock-active", "train", ALARM).phrased(
        "turn {state} active for the {time} alarm in the clock",
        "switch the clock alarm at {time} {state}",
    ),
    delete("clock-delete", "train", ALARM).phrased(
        "delete the {time} alarm in the clock", "delete the alarm at {time}"
    ),
    edit("clock-edit", "validation", ALARM, "label").phrased(
        "edit the {time} alarm in the clock and set label to {label}",
        "change the label of the alarm at {time} to {label}",
    ),
    create("clock-timer", "train", TIMER, "minutes", "purpose").phrased(
        "start a new timer with minutes {minutes} and purpose {purpose} in the clock",
        "in the clock timers add {minutes} minutes with purpose {purpose}",
    ),
    create("calendar-add", "train", EVENT, "title", "time", "day").phrased(
        "add a calendar event with title {title} , time {time} and day {day}",
        "create an event titled {title} on {day} at time {time} in the calendar",
    ),
    create("calendar-add-place", "validation", EVENT, "title", "time", "place", "day").phrased(
        "add a calendar event with title {title} , time {time} , place {place} and day {day}",
        "create an event titled {title} on {day} at time {time} at {place} in the calendar",
    ),
    delete("calendar-delete", "new_templates", EVENT).phrased(
        "delete the calendar event {title}", "delete {title} from the calendar"
    ),
    edit("calendar-move", "train", EVENT, "day").phrased(
        "edit the calendar event {title} and set day to {day}",
        "move the event {title} in the calendar to {day}",
    ),
    read("calendar-when", "train", EVENT, "time").phrased(
        "what is the time of the calendar event {title}",
        "answer with the time of {title} in the calendar",
    ),
    missing("calendar-delete-missing", "new_templates", EVENT).phrased(
        "delete the calendar event {title}", "delete {title} from the calendar"
    ),
    create("notes-create", "train", NOTE, "title", "body").phrased(
        "create a new note with title {title} and body {body}",
        "write a note titled {title} with body {body}",
        "in notes add {title} with body {body}",
    ),
    delete("notes-delete", "train", NOTE),
    edit("notes-edit", "new_templates", NOTE, "body"),
    toggle("notes-pin", "train", NOTE),
    read("notes-read", "new_templates", NOTE, "body"),
    in_long_list(delete("notes-delete-far", "new_templates", NOTE)),
    create("tasks-add", "train", TASK, "task").phrased(
        "create a new task with task {task}",
        "add the task {task}",
        "put {task} on the list in tasks",
    ),
    check("tasks-check", "train", TASK, 1).phrased(
        "check the task {task}", "tick off {task} in tasks"
    ),
    check("tasks-check-two", "train", TASK, 2).phrased(
        "check the tasks {task} and {task2}", "tick off {task} and {task2} in tasks"
    ),
    check("tasks-check-three", "validation", TASK, 3).phrased(
        "check the tasks {task} , {task2} and {task3}",
        "tick off {task} , {task2} and {task3} in tasks",
    ),
    delete("tasks-remove", "train", TASK),
    create("expenses-add", "train", EXPENSE, "item", "amount").phrased(
        "add an expense with item {item} and amount {amount}",
        "record {amount} for the item {item} in expenses",
    ),
    create("expenses-add-category", "train", EXPENSE, "item", "amount", "category").phrased(
        "add an expense with item {item} , amount {amount} and category {category}",
        "record {amount} for the item {item} as {category} in expenses",
    ),
    edit("expenses-edit", "train", EXPENSE, "amount"),
    delete("expenses-delete", "train", EXPENSE),
    read("expenses-amount", "new_templates", EXPENSE, "amount"),
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
    create("recipes-write", "new_apps", RECIPE, "dish", "duration").phrased(
        "in recipes write a recipe with dish {dish} and duration {duration}",
        "write a new recipe for the dish {dish} with duration {duration}",
    ),
    delete("recipes-discard", "new_apps", RECIPE),
    missing("recipes-discard-missing", "new_apps", RECIPE),
    toggle("recipes-star", "new_apps", RECIPE),
    edit("recipes-change", "new_apps", RECIPE, "duration"),
    read("recipes-duration", "new_apps", RECIPE, "duration"),
    create("music-create", "new_apps", PLAYLIST, "playlist", "song").phrased(
        "in music create a playlist with playlist {playlist} and song {song}",
        "create a playlist {playlist} in music with song {song}",
    ),
    delete("music-erase", "new_apps", PLAYLIST).phrased(
        "erase the music playlist {playlist}", "erase {playlist} from music"
    ),
    switch("music-player", "new_apps", MODES).phrased(
        "turn {state} {switch} in the music player",
        "switch {switch} {state} in the player of music",
    ),
)
