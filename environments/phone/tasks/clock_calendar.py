"""Tasks with the clock and the calendar."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.calendar import EVENT
from swarm_ui.environments.phone.apps.clock import ALARM, TIMER
from swarm_ui.environments.phone.tasks.task_kinds import create, delete, edit, flip, missing, read
from swarm_ui.environments.phone.tasks.template import Template

_CLOCK, _CALENDAR = ("clock",), ("calendar",)
TEMPLATES = (
    Template(
        name="clock-alarm",
        apps=_CLOCK,
        split="train",
        steps=4,
        goals=(
            "set a new alarm with time {time} in the clock",
            "create an alarm for time {time}",
            "add a clock alarm at {time}",
        ),
        make=create(ALARM, "time"),
        tags=("form",),
    ),
    Template(
        name="clock-alarm-label",
        apps=_CLOCK,
        split="new_templates",
        steps=5,
        goals=(
            "set a new alarm with time {time} and label {label} in the clock",
            "create an alarm for time {time} with label {label}",
        ),
        make=create(ALARM, "time", "label"),
        tags=("form",),
    ),
    Template(
        name="clock-active",
        apps=_CLOCK,
        split="train",
        steps=3,
        goals=(
            "turn {state} active for the {time} alarm in the clock",
            "switch the clock alarm at {time} {state}",
        ),
        make=flip(ALARM),
        tags=("toggle",),
    ),
    Template(
        name="clock-delete",
        apps=_CLOCK,
        split="train",
        steps=4,
        goals=("delete the {time} alarm in the clock", "delete the alarm at {time}"),
        make=delete(ALARM),
        tags=("delete",),
    ),
    Template(
        name="clock-edit",
        apps=_CLOCK,
        split="validation",
        steps=5,
        goals=(
            "edit the {time} alarm in the clock and set label to {label}",
            "change the label of the alarm at {time} to {label}",
        ),
        make=edit(ALARM, "label"),
        tags=("edit",),
    ),
    Template(
        name="clock-timer",
        apps=_CLOCK,
        split="train",
        steps=6,
        goals=(
            "start a new timer with minutes {minutes} and purpose {purpose} in the clock",
            "in the clock timers add {minutes} minutes with purpose {purpose}",
        ),
        make=create(TIMER, "minutes", "purpose"),
        tags=("form",),
    ),
    Template(
        name="calendar-add",
        apps=_CALENDAR,
        split="train",
        steps=6,
        goals=(
            "add a calendar event with title {title} , time {time} and day {day}",
            "create an event titled {title} on {day} at time {time} in the calendar",
        ),
        make=create(EVENT, "title", "time", "day"),
        tags=("form", "choice"),
    ),
    Template(
        name="calendar-add-place",
        apps=_CALENDAR,
        split="validation",
        steps=7,
        goals=(
            "add a calendar event with title {title} , time {time} , place {place} and day {day}",
            "create an event titled {title} on {day} at time {time} at {place} in the calendar",
        ),
        make=create(EVENT, "title", "time", "place", "day"),
        tags=("form", "choice"),
    ),
    Template(
        name="calendar-delete",
        apps=_CALENDAR,
        split="new_templates",
        steps=4,
        goals=("delete the calendar event {title}", "delete {title} from the calendar"),
        make=delete(EVENT),
        tags=("delete",),
    ),
    Template(
        name="calendar-move",
        apps=_CALENDAR,
        split="train",
        steps=5,
        goals=(
            "edit the calendar event {title} and set day to {day}",
            "move the event {title} in the calendar to {day}",
        ),
        make=edit(EVENT, "day"),
        tags=("edit", "choice"),
    ),
    Template(
        name="calendar-when",
        apps=_CALENDAR,
        split="train",
        steps=3,
        goals=(
            "what is the time of the calendar event {title}",
            "answer with the time of {title} in the calendar",
        ),
        make=read(EVENT, "time"),
        tags=("answer",),
    ),
    Template(
        name="calendar-delete-missing",
        apps=_CALENDAR,
        split="new_templates",
        steps=1,
        goals=("delete the calendar event {title}", "delete {title} from the calendar"),
        make=missing(EVENT),
        tags=("infeasible",),
    ),
)
