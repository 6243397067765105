"""Tasks: to-dos with a due date, a priority and notes."""

from __future__ import annotations

from datetime import UTC, datetime

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.record_list import FormField, RecordListApp
from swarm_ui.environments.phone.state import Row

PRIORITIES = ("high", "medium", "low", "none")
"""Priorities, in the order of their numbers in the database, from 0."""
TASK_LIST = db.single_table(
    "/data/data/org.tasks/databases/database",
    "tasks", "_id", "todo",
    (
        db.text("title", "task", None), db.integer("importance", "", 3),
        db.integer("dueDate", "due"), db.integer("hideUntil"), db.integer("created"),
        db.integer("modified"), db.integer("completed"), db.integer("deleted"),
        db.text("notes", "", None),
        db.integer("estimatedSeconds"), db.integer("elapsedSeconds"), db.integer("timerStart"),
        db.integer("notificationFlags"), db.integer("lastNotified"),
        db.text("recurrence", "", None), db.integer("repeat_from"),
        db.text("calendarUri", "", None), db.text("remoteId", "", None), db.integer("collapsed"),
        db.integer("parent"), db.integer("order", "", None), db.integer("read_only"),
    ),
)  # fmt: skip


def _when(record: Row, key: str) -> str:
    moment = int(record.get(key, "0"))
    return (
        f"{datetime.fromtimestamp(moment / 1000, UTC):%a %Y-%m-%d %H:%M}" if moment else "no date"
    )


def _row(record: Row) -> tuple[str, str]:
    done = int(record.get("completed", "0"))
    priority = PRIORITIES[int(record.get("importance", "3"))]
    state = f" · done {_when(record, 'completed')}" if done else ""
    return record["task"], f"due {_when(record, 'due')} · {priority} priority{state}"


def _detail(record: Row) -> list[tuple[str, str]]:
    return [
        ("Due", _when(record, "due")),
        ("Priority", PRIORITIES[int(record.get("importance", "3"))]),
        ("Completed", _when(record, "completed")),
        ("Hidden until", _when(record, "hideUntil")),
        ("Description", record.get("notes", "")),
    ]


LIST = RecordListApp(
    app="tasks",
    title="My Tasks",
    table="todo",
    fields=(FormField("task", "Title"), FormField("notes", "Description")),
    add="Create task",
    row=_row,
    sort_key=lambda key, record: int(record.get("due", "0")),
    on_insert=lambda handset: {
        "created": str(handset.now * 1000),
        "modified": str(handset.now * 1000),
    },
    on_update=lambda handset: {"modified": str(handset.now * 1000)},
    detail=_detail,
)
TASKS = LIST.spec("org.tasks", "com.todoroo.astrid.activity.MainActivity", TASK_LIST)
