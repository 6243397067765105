"""Tasks with the clock and the calendar."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.record_apps import ALARM, EVENT, TIMER
from swarm_ui.environments.phone.tasks.task_kinds import create, delete, edit, missing, read, toggle

TEMPLATES = (
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
)
