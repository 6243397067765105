"""Tasks with notes, tasks and expenses."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.expenses import EXPENSE
from swarm_ui.environments.phone.apps.notes import NOTE
from swarm_ui.environments.phone.apps.tasks import TASK
from swarm_ui.environments.phone.tasks.task_kinds import create, delete, edit, flip, read, tick
from swarm_ui.environments.phone.tasks.template import Template

_NOTES, _TASKS, _EXPENSES = ("notes",), ("tasks",), ("expenses",)
NOTE_TEMPLATES = (
    Template(
        name="notes-create",
        apps=_NOTES,
        split="train",
        steps=5,
        goals=(
            "create a new note with title {title} and body {body}",
            "write a note titled {title} with body {body}",
            "in notes add {title} with body {body}",
        ),
        make=create(NOTE, "title", "body"),
        tags=("form",),
    ),
    Template(
        name="notes-delete",
        apps=_NOTES,
        split="train",
        steps=4,
        goals=("delete the note {title}", "delete {title} from notes"),
        make=delete(NOTE),
        tags=("delete",),
    ),
    Template(
        name="notes-edit",
        apps=_NOTES,
        split="new_templates",
        steps=5,
        goals=(
            "edit the note {title} and set body to {body}",
            "change the body of {title} in notes to {body}",
        ),
        make=edit(NOTE, "body"),
        tags=("edit",),
    ),
    Template(
        name="notes-pin",
        apps=_NOTES,
        split="train",
        steps=3,
        goals=(
            "turn {state} pinned for the note {title}",
            "switch pinned {state} for {title} in notes",
        ),
        make=flip(NOTE),
        tags=("toggle",),
    ),
    Template(
        name="notes-read",
        apps=_NOTES,
        split="new_templates",
        steps=3,
        goals=("what is the body of the note {title}", "answer with the body of {title} in notes"),
        make=read(NOTE, "body"),
        tags=("answer",),
    ),
    Template(
        name="notes-delete-far",
        apps=_NOTES,
        split="new_templates",
        steps=5,
        goals=("delete the note {title}", "delete {title} from notes"),
        make=delete(NOTE),
        tags=("delete", "scroll"),
        rows=(9, 12),
    ),
)
TASK_TEMPLATES = (
    Template(
        name="tasks-add",
        apps=_TASKS,
        split="train",
        steps=4,
        goals=(
            "create a new task with task {task}",
            "add the task {task}",
            "put {task} on the list in tasks",
        ),
        make=create(TASK, "task"),
        tags=("form",),
    ),
    Template(
        name="tasks-check",
        apps=_TASKS,
        split="train",
        steps=2,
        goals=("check the task {task}", "tick off {task} in tasks"),
        make=tick(TASK, 1),
        tags=("check",),
    ),
    Template(
        name="tasks-check-two",
        apps=_TASKS,
        split="train",
        steps=3,
        goals=(
            "check the tasks {task} and {task2}",
            "tick off {task} and {task2} in tasks",
        ),
        make=tick(TASK, 2),
        tags=("check", "several"),
    ),
    Template(
        name="tasks-check-three",
        apps=_TASKS,
        split="validation",
        steps=4,
        goals=(
            "check the tasks {task} , {task2} and {task3}",
            "tick off {task} , {task2} and {task3} in tasks",
        ),
        make=tick(TASK, 3),
        tags=("check", "several"),
        rows=(4, 5),
    ),
    Template(
        name="tasks-remove",
        apps=_TASKS,
        split="train",
        steps=4,
        goals=("remove the task {task}", "remove {task} from tasks"),
        make=delete(TASK),
        tags=("delete",),
    ),
)
EXPENSE_TEMPLATES = (
    Template(
        name="expenses-add",
        apps=_EXPENSES,
        split="train",
        steps=5,
        goals=(
            "add an expense with item {item} and amount {amount}",
            "record {amount} for the item {item} in expenses",
        ),
        make=create(EXPENSE, "item", "amount"),
        tags=("form",),
    ),
    Template(
        name="expenses-add-category",
        apps=_EXPENSES,
        split="train",
        steps=6,
        goals=(
            "add an expense with item {item} , amount {amount} and category {category}",
            "record {amount} for the item {item} as {category} in expenses",
        ),
        make=create(EXPENSE, "item", "amount", "category"),
        tags=("form", "choice"),
    ),
    Template(
        name="expenses-edit",
        apps=_EXPENSES,
        split="train",
        steps=5,
        goals=(
            "edit the expense {item} and set amount to {amount}",
            "change the amount of {item} in expenses to {amount}",
        ),
        make=edit(EXPENSE, "amount"),
        tags=("edit",),
    ),
    Template(
        name="expenses-delete",
        apps=_EXPENSES,
        split="train",
        steps=4,
        goals=("delete the expense {item}", "delete {item} from expenses"),
        make=delete(EXPENSE),
        tags=("delete",),
    ),
    Template(
        name="expenses-amount",
        apps=_EXPENSES,
        split="new_templates",
        steps=3,
        goals=(
            "what is the amount of the expense {item}",
            "answer with the amount of {item} in expenses",
        ),
        make=read(EXPENSE, "amount"),
        tags=("answer",),
    ),
)
TEMPLATES = NOTE_TEMPLATES + TASK_TEMPLATES + EXPENSE_TEMPLATES
