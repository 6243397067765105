"""Tasks with notes, tasks and expenses."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.record_apps import EXPENSE, NOTE, TASK
from swarm_ui.environments.phone.tasks.task_kinds import (
    check,
    create,
    delete,
    edit,
    in_long_list,
    read,
    toggle,
)

NOTE_TEMPLATES = (
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
)
TASK_TEMPLATES = (
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
)
EXPENSE_TEMPLATES = (
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
)
TEMPLATES = NOTE_TEMPLATES + TASK_TEMPLATES + EXPENSE_TEMPLATES
