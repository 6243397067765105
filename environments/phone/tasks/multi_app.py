"""Long errands through several apps of a whole phone."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.browser import PAGE
from swarm_ui.environments.phone.apps.calendar import EVENT
from swarm_ui.environments.phone.apps.clock import ALARM
from swarm_ui.environments.phone.apps.contacts import CONTACT
from swarm_ui.environments.phone.apps.expenses import EXPENSE
from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.apps.notes import NOTE
from swarm_ui.environments.phone.apps.tasks import TASK
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.camera_browser import add_page, download, photo
from swarm_ui.environments.phone.tasks.goal import Change, Configure, Create, Goal, Source, Want
from swarm_ui.environments.phone.tasks.task_kinds import random_row, sample, tick, values
from swarm_ui.environments.phone.tasks.template import Template


def _event_alarm_message(sampler: Sampler, device: Device) -> Goal:
    """The time of an event as an alarm and in a message."""
    row = random_row(sampler, device, EVENT)
    event = device.tables["event"][row]
    to = sampler.first_name()
    source = Source(table="event", row=row, field="time", value=event["time"])
    wants = (
        Create(table=ALARM.name, fields={"time": event["time"]}, source=source),
        Create(table=MESSAGE.name, fields={"to": to, "text": event["time"]}, source=source),
    )
    return Goal(words={"title": event["title"], "to": to}, wants=wants)


def _trip(sampler: Sampler, device: Device) -> Goal:
    """An event, a task, an expense."""
    event = values(sampler, EVENT, ("title", "time", "day"))
    task, expense = values(sampler, TASK, ("task",)), values(sampler, EXPENSE, ("item", "amount"))
    wants = tuple(
        Create(table=table.name, fields=fields)
        for table, fields in ((EVENT, event), (TASK, task), (EXPENSE, expense))
    )
    return Goal(words={**event, **task, **expense}, wants=wants)


def _party(sampler: Sampler, device: Device) -> Goal:
    """A contact, an event, an alarm and a message."""
    contact, event = (
        values(sampler, CONTACT, ("name", "phone", "email")),
        values(sampler, EVENT, ("title",)),
    )
    alarm, message = values(sampler, ALARM, ("time",)), values(sampler, MESSAGE, ("to", "text"))
    wants = tuple(
        Create(table=table.name, fields=fields)
        for table, fields in (
            (CONTACT, contact),
            (EVENT, event),
            (ALARM, alarm),
            (MESSAGE, message),
        )
    )
    return Goal(words={**contact, **event, **alarm, **message}, wants=wants)


def _page_contact_message(sampler: Sampler, device: Device) -> Goal:
    """A phone number from the web in contacts, and a price from there in a message."""
    key, page = add_page(sampler, device)
    name, to = sampler.full_name(), sampler.first_name()
    phone = Source(table=PAGE.name, row=key, field="phone", value=page["phone"])
    price = Source(table=PAGE.name, row=key, field="price", value=page["price"])
    wants: tuple[Want, ...] = (
        Create(table=CONTACT.name, fields={"name": name, "phone": page["phone"]}, source=phone),
        Create(table=MESSAGE.name, fields={"to": to, "text": page["price"]}, source=price),
    )
    return Goal(words={"address": page["address"], "name": name, "to": to}, wants=wants)


def _tidy(sampler: Sampler, device: Device) -> Goal:
    """Two tasks ticked, a note pinned, two switches set."""
    ticked = tick(TASK, 2)(sampler, device)
    note = random_row(sampler, device, NOTE)
    device.update("note", note, {"pinned": "off"})
    title = device.tables["note"][note]["title"]
    for key in ("bluetooth", "dark mode"):
        device.set(key, "off")
    wants: tuple[Want, ...] = (
        *ticked.wants,
        Change(table="note", row=note, fields={"pinned": "on"}),
        Configure(key="bluetooth", value="on"),
        Configure(key="dark mode", value="on"),
    )
    return Goal(words={**ticked.words, "title": title}, wants=wants)


def _report(sampler: Sampler, device: Device) -> Goal:
    """A photo taken, a file downloaded and starred, and a note about it."""
    key, page = add_page(sampler, device)
    note = values(sampler, NOTE, ("title", "body"))
    wants: tuple[Want, ...] = (
        photo(),
        download(key, page, starred="on"),
        Create(table=NOTE.name, fields=note),
    )
    return Goal(words={"address": page["address"], **note}, wants=wants)


def _earlier(sampler: Sampler, device: Device) -> Goal:
    """Which of two events on the calendar is earlier in the day."""
    rows = [sample(sampler, EVENT) for _ in range(2)]
    keys = [device.insert("event", row) for row in rows]
    sources = tuple(
        Source(table="event", row=k, field="time", value=row["time"])
        for k, row in zip(keys, rows, strict=True)
    )
    words = {"title": rows[0]["title"], "title2": rows[1]["title"]}
    earlier = min(rows, key=lambda row: row["time"])
    return Goal(words=words, answer=earlier["title"], sources=sources)


TEMPLATES = (
    Template(
        name="errand-event",
        apps=("calendar", "clock", "messages"),
        split="extended_train",
        steps=17,
        goals=(
            "set a new alarm with the time of the calendar event {title} and send that time in a "
            "message to {to}",
            "look up the time of {title} in the calendar , message it to {to} and create an alarm "
            "for it",
        ),
        make=_event_alarm_message,
        tags=("across", "form", "several"),
    ),
    Template(
        name="errand-trip",
        apps=("calendar", "tasks", "expenses"),
        split="extended_train",
        steps=19,
        goals=(
            "add a calendar event with title {title} , time {time} and day {day} , create the "
            "task {task} and add an expense with item {item} and amount {amount}",
            "put {title} on {day} at time {time} in the calendar , {task} in tasks and {item} for "
            "{amount} in expenses",
        ),
        make=_trip,
        tags=("across", "form", "several"),
    ),
    Template(
        name="errand-party",
        apps=("contacts", "calendar", "clock", "messages"),
        split="extended_validation",
        steps=25,
        goals=(
            "add a contact with name {name} , phone {phone} and email {email} , a calendar event "
            "with title {title} , an alarm for time {time} , and send a message to {to} with "
            "text {text}",
            "save {name} with phone {phone} and email {email} in contacts , put {title} in the "
            "calendar , set an alarm at {time} and message {to} the text {text}",
        ),
        make=_party,
        tags=("across", "form", "several"),
    ),
    Template(
        name="errand-page",
        apps=("browser", "contacts", "messages"),
        split="extended_templates",
        steps=19,
        goals=(
            "save the phone of the page {address} in contacts for {name} and send its price in a "
            "message to {to}",
            "look {address} up , add a contact {name} with its phone and message {to} its price",
        ),
        make=_page_contact_message,
        tags=("across", "form", "several", "search"),
    ),
    Template(
        name="errand-tidy",
        apps=("tasks", "notes", "settings"),
        split="extended_validation",
        steps=17,
        goals=(
            "check the tasks {task} and {task2} , turn on pinned for the note {title} and turn on "
            "bluetooth and dark mode in settings",
            "tick off {task} and {task2} in tasks , pin the note {title} , then switch bluetooth "
            "and dark mode on",
        ),
        make=_tidy,
        tags=("across", "toggle", "several"),
    ),
    Template(
        name="errand-report",
        apps=("camera", "browser", "files", "notes"),
        split="extended_templates",
        steps=22,
        goals=(
            "take a photo and download the file of the page {address} , star that file in files , "
            "then write a note titled {title} with body {body}",
            "create a note with title {title} and body {body} , take a photo , download the file "
            "of {address} and turn on starred for the file",
        ),
        make=_report,
        tags=("across", "camera", "download", "several"),
    ),
    Template(
        name="calendar-earlier",
        apps=("calendar",),
        split="extended_templates",
        steps=8,
        goals=(
            "which of the calendar events {title} and {title2} is earlier in the day",
            "compare the times of {title} and {title2} in the calendar and answer with the title "
            "of the earlier one",
        ),
        make=_earlier,
        tags=("answer", "several"),
    ),
)
