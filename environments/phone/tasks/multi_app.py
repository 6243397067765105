"""Long tasks through several apps of a full device."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.apps.record_apps import ALARM, CONTACT, EVENT, EXPENSE, NOTE, TASK
from swarm_ui.environments.phone.apps.search_apps import PAGE
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.camera_browser import add_page, download, photo
from swarm_ui.environments.phone.tasks.goal import Change, Configure, Create, Goal, Source, Want
from swarm_ui.environments.phone.tasks.task_kinds import (
    add_record,
    check,
    create_records,
    numbered,
    random_row,
    values,
)
from swarm_ui.environments.phone.tasks.template import (
    extended_templates,
    extended_train,
    extended_validation,
)


def _event_alarm_message(sampler: Sampler, device: Device) -> Goal:
    """Task: set an alarm for the time of an event, and send this time in a message."""
    key, event = random_row(EVENT, sampler, device)
    to = sampler.first_name()
    source = Source.of(EVENT, key, event, "time")
    wants = (
        Create(table=ALARM.name, fields={"time": event["time"]}, source=source),
        Create(table=MESSAGE.name, fields={"to": to, "text": event["time"]}, source=source),
    )
    return Goal(words={"title": event["title"], "to": to}, wants=wants)


_TRIP = create_records(
    (EVENT, ("title", "time", "day")), (TASK, ("task",)), (EXPENSE, ("item", "amount"))
)
_PARTY = create_records(
    (CONTACT, ("name", "phone", "email")),
    (EVENT, ("title",)),
    (ALARM, ("time",)),
    (MESSAGE, ("to", "text")),
)
_check_two = check("tasks-check-two", "train", TASK, 2).make


def _page_contact_message(sampler: Sampler, device: Device) -> Goal:
    """Task: copy a phone number from a web page to contacts, and a price from this page to a
    message."""
    key, page = add_page(sampler, device)
    name, to = sampler.full_name(), sampler.first_name()
    phone, price = (Source.of(PAGE, key, page, field) for field in ("phone", "price"))
    wants: tuple[Want, ...] = (
        Create(table=CONTACT.name, fields={"name": name, "phone": page["phone"]}, source=phone),
        Create(table=MESSAGE.name, fields={"to": to, "text": page["price"]}, source=price),
    )
    return Goal(words={"address": page["address"], "name": name, "to": to}, wants=wants)


def _tidy(sampler: Sampler, device: Device) -> Goal:
    """Task: check two tasks, pin a note, and turn two switches on."""
    checked = _check_two(sampler, device)
    note, row = random_row(NOTE, sampler, device)
    device.update("note", note, {"pinned": "off"})
    for key in ("bluetooth", "dark mode"):
        device.set(key, "off")
    wants: tuple[Want, ...] = (
        *checked.wants,
        Change(table="note", row=note, fields={"pinned": "on"}),
        Configure(key="bluetooth", value="on"),
        Configure(key="dark mode", value="on"),
    )
    return Goal(words={**checked.words, "title": row["title"]}, wants=wants)


def _report(sampler: Sampler, device: Device) -> Goal:
    """Task: take a photo, download a file and star it, and create a note."""
    key, page = add_page(sampler, device)
    note = values(sampler, NOTE, ("title", "body"))
    wants: tuple[Want, ...] = (
        photo(),
        download(key, page, starred="on"),
        Create(table=NOTE.name, fields=note),
    )
    return Goal(words={"address": page["address"], **note}, wants=wants)


def _earlier(sampler: Sampler, device: Device) -> Goal:
    """Task: answer with the earlier of two calendar events."""
    added = [add_record(EVENT, sampler, device) for _ in range(2)]
    sources = tuple(Source.of(EVENT, key, row, "time") for key, row in added)
    words = numbered("title", [row["title"] for _, row in added])
    earlier = min((row for _, row in added), key=lambda row: row["time"])
    return Goal(words=words, answer=earlier["title"], sources=sources)


TEMPLATES = (
    extended_train(
        "errand-event", _event_alarm_message, 17, "calendar clock messages", "across form several"
    ).phrased(
        "set a new alarm with the time of the calendar event {title} and send that time in a "
        "message to {to}",
        "look up the time of {title} in the calendar , message it to {to} and create an alarm "
        "for it",
    ),
    extended_train(
        "errand-trip", _TRIP, 19, "calendar tasks expenses", "across form several"
    ).phrased(
        "add a calendar event with title {title} , time {time} and day {day} , create the "
        "task {task} and add an expense with item {item} and amount {amount}",
        "put {title} on {day} at time {time} in the calendar , {task} in tasks and {item} for "
        "{amount} in expenses",
    ),
    extended_validation(
        "errand-party", _PARTY, 25, "contacts calendar clock messages", "across form several"
    ).phrased(
        "add a contact with name {name} , phone {phone} and email {email} , a calendar event "
        "with title {title} , an alarm for time {time} , and send a message to {to} with "
        "text {text}",
        "save {name} with phone {phone} and email {email} in contacts , put {title} in the "
        "calendar , set an alarm at {time} and message {to} the text {text}",
    ),
    extended_templates(
        "errand-page",
        _page_contact_message,
        19,
        "browser contacts messages",
        "across form several search",
    ).phrased(
        "save the phone of the page {address} in contacts for {name} and send its price in a "
        "message to {to}",
        "look {address} up , add a contact {name} with its phone and message {to} its price",
    ),
    extended_validation(
        "errand-tidy", _tidy, 17, "tasks notes settings", "across toggle several"
    ).phrased(
        "check the tasks {task} and {task2} , turn on pinned for the note {title} and turn on "
        "bluetooth and dark mode in settings",
        "tick off {task} and {task2} in tasks , pin the note {title} , then switch bluetooth "
        "and dark mode on",
    ),
    extended_templates(
        "errand-report", _report, 22, "camera browser files notes", "across camera download several"
    ).phrased(
        "take a photo and download the file of the page {address} , star that file in files , "
        "then write a note titled {title} with body {body}",
        "create a note with title {title} and body {body} , take a photo , download the file "
        "of {address} and turn on starred for the file",
    ),
    extended_templates("calendar-earlier", _earlier, 8, "calendar", "answer several").phrased(
        "which of the calendar events {title} and {title2} is earlier in the day",
        "compare the times of {title} and {title2} in the calendar and answer with the title "
        "of the earlier one",
    ),
)
