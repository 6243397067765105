"""The task templates of split facts: a new record in one app, with values from other apps.

The goal names the apps and the records, but none of the values. The needed senders of all templates
together form a graph without cycles: browser, calendar and notes, then contacts, then messages,
then expenses, clock and tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.apps.record_apps import ALARM, CONTACT, EXPENSE, NOTE, TASK
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.split.facts import (
    EMAIL,
    NOTE_AMOUNT,
    NOTE_EMAIL,
    NOTE_TEXT,
    OPENS,
    PAGE_PHONE,
    PHONE,
    PLACE,
    PRICE,
    SENT_AMOUNT,
    SENT_CHORE,
    TIME,
    Fact,
    Fill,
    Rule,
)

SplitOf = Literal["train", "validation", "new_templates"]
NAMES = "abc"
"""Placeholders of the names of the facts in goal texts, in order."""


class SplitTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A task that needs facts from apps other than the one it ends in."""

    name: str
    split: SplitOf
    into: Table
    """The table of the new record; its app is the acting one."""
    facts: tuple[Fact, ...]
    fills: Mapping[str, Fill]
    """Fields of the new record that are computed from the facts."""
    given: tuple[str, ...]
    """Fields of the new record whose values the goal contains, as placeholders of these names."""
    goals: tuple[str, ...]

    @property
    def acting(self) -> str:
        """The app that the task ends in."""
        return self.into.app

    @property
    def sources(self) -> tuple[str, ...]:
        """The other apps that it needs, without repetition."""
        return tuple(dict.fromkeys(fact.app for fact in self.facts))

    @property
    def steps(self) -> int:
        """Actions in the acting app, without the one that ends the episode."""
        return 2 + len(self.fills) + len(self.given)


def _task(
    split: SplitOf,
    name: str,
    into: tuple[Table, str],
    rule: Rule,
    facts: tuple[Fact, ...],
    *goals: str,
) -> SplitTemplate:
    """One computed field. The given fields are the placeholders of the first goal text."""
    table, field = into
    given = tuple(f.name for f in table.form if f"{{{f.name}}}" in goals[0])
    fills = {field: Fill(rule, tuple(range(len(facts))))}
    return SplitTemplate(
        name=name, split=split, into=table, facts=facts, fills=fills, given=given, goals=goals
    )


_TEXT, _AMOUNT, _TIME = (MESSAGE, "text"), (EXPENSE, "amount"), (ALARM, "time")
_CARD = SplitTemplate(
    name="split-contact-card",
    split="train",
    into=CONTACT,
    facts=(PAGE_PHONE, NOTE_EMAIL),
    fills={"phone": Fill("join", (0,)), "email": Fill("join", (1,))},
    given=("name",),
    goals=(
        "add a contact with name {name} , the phone of the page {a} and the email in the note {b}",
        "save {name} in contacts with the phone on the page {a} and the email that note {b} has",
    ),
)
_OUTING = SplitTemplate(
    name="split-outing",
    split="train",
    into=EXPENSE,
    facts=(PLACE, SENT_AMOUNT),
    fills={"item": Fill("join", (0,)), "amount": Fill("join", (1,))},
    given=(),
    goals=(
        "add an expense with the place of the event {a} as item and the amount that {b} sent",
        "record the amount in the message of {b} in expenses , the place of the event {a} is the "
        "item",
    ),
)
_ALL = (
    _task(
        "train", "split-phone-message", _TEXT, "join", (PHONE,),
        "send a message to {to} with the phone of the contact {a}",
        "message {to} the phone of {a} from contacts",
    ),
    _task(
        "train", "split-time-message", _TEXT, "join", (TIME,),
        "send a message to {to} with the time of the event {a}",
        "message {to} when the event {a} of the calendar begins",
    ),
    _task(
        "train", "split-page-contact", (CONTACT, "phone"), "join", (PAGE_PHONE,),
        "add a contact with name {name} and the phone of the page {a}",
        "save {name} in contacts with the phone on the page {a}",
    ),
    _task(
        "train", "split-note-contact", (CONTACT, "email"), "join", (NOTE_EMAIL,),
        "add a contact with name {name} and the email in the note {a}",
        "save {name} in contacts with the email that note {a} has",
    ),
    _CARD,
    _task(
        "train", "split-message-expense", _AMOUNT, "join", (SENT_AMOUNT,),
        "add an expense with item {item} and the amount that {a} sent",
        "record {item} in expenses with the amount in the message of {a}",
    ),
    _task(
        "train", "split-message-budget", _AMOUNT, "sum", (SENT_AMOUNT, SENT_AMOUNT),
        "add an expense with item {item} and the sum of the amounts that {a} and {b} sent",
        "record {item} in expenses with the total of the messages of {a} and {b}",
    ),
    _task(
        "train", "split-page-budget", _AMOUNT, "sum", (PRICE, SENT_AMOUNT),
        "add an expense with item {item} and the sum of the price of the page {a} and the amount "
        "that {b} sent",
        "record {item} in expenses , the price on the page {a} plus the message of {b}",
    ),
    _task(
        "train", "split-budget-of-three", _AMOUNT, "sum", (PRICE, NOTE_AMOUNT, SENT_AMOUNT),
        "add an expense with item {item} and the sum of the price of the page {a} , the amount in "
        "the note {b} and the amount that {c} sent",
        "record {item} in expenses , the price on the page {a} plus the note {b} plus the message "
        "of {c}",
    ),
    _OUTING,
    _task(
        "train", "split-event-alarm", _TIME, "join", (TIME,),
        "set an alarm with label {label} for the time of the event {a}",
        "create the alarm {label} in the clock for when the event {a} begins",
    ),
    _task(
        "train", "split-first-alarm", _TIME, "first", (TIME, OPENS),
        "set an alarm with label {label} for the time of the event {a} or for when the page {b} "
        "opens , whichever is first",
        "create the alarm {label} for the earlier of the event {a} and the opening of the page {b}",
    ),
    _task(
        "train", "split-message-task", (TASK, "task"), "join", (SENT_CHORE,),
        "add the task that {a} sent in messages",
        "put what {a} asks for in messages on the list of tasks",
    ),
    _task(
        "validation", "split-place-note", (NOTE, "body"), "join", (PLACE,),
        "write a note with title {title} and the place of the event {a}",
        "note the place of the event {a} under the title {title}",
    ),
    _task(
        "validation", "split-most-expense", _AMOUNT, "most", (PRICE, SENT_AMOUNT),
        "add an expense with item {item} and the larger of the price of the page {a} and the "
        "amount that {b} sent",
    ),
    _task(
        "new_templates", "split-email-message", _TEXT, "join", (EMAIL,),
        "send a message to {to} with the email of the contact {a}",
        "message {to} the email of {a} from contacts",
    ),
    _task(
        "new_templates", "split-note-message", _TEXT, "join", (NOTE_TEXT,),
        "send a message to {to} with the text of the note {a}",
    ),
    _task(
        "new_templates", "split-phone-and-time", _TEXT, "join", (PHONE, TIME),
        "send a message to {to} with the phone of the contact {a} and then the time of the event "
        "{b}",
    ),
    _task(
        "new_templates", "split-page-alarm", _TIME, "join", (OPENS,),
        "set an alarm with label {label} for when the page {a} opens",
    ),
    _task(
        "new_templates", "split-last-alarm", _TIME, "last", (TIME, OPENS),
        "set an alarm with label {label} for the time of the event {a} or for when the page {b} "
        "opens , whichever is last",
    ),
    _task(
        "new_templates", "split-least-expense", _AMOUNT, "least",
        (PRICE, NOTE_AMOUNT, SENT_AMOUNT),
        "add an expense with item {item} and the least of the price of the page {a} , the amount "
        "in the note {b} and the amount that {c} sent",
    ),
)  # fmt: skip
TEMPLATES: Mapping[str, SplitTemplate] = {template.name: template for template in _ALL}


def split_tasks(split: SplitOf) -> tuple[str, ...]:
    """Names of the templates of a split."""
    return tuple(name for name, template in TEMPLATES.items() if template.split == split)
