"""Apps that keep records of one kind: a list with a search field, a record, and a form.

Pro Expense, Broccoli (recipes), Tasks, OpenTracks, which records nothing, since the handset has no
GPS, and Joplin, whose notes are in notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

import msgspec

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Row, Screen


class FormField(msgspec.Struct, frozen=True):
    """One field of a record."""

    key: str
    label: str
    choices: tuple[str, ...] = ()
    """The values to choose from. Without choices the user types a text."""
    is_valid: Callable[[str], bool] = lambda text: True


class RecordListApp(msgspec.Struct, frozen=True, kw_only=True):
    """The screens of an app that keeps records of one kind."""

    app: str
    title: str
    table: str
    fields: tuple[FormField, ...]
    """The first field is the name of the record and is required."""
    add: str = ""
    """Text of the button that opens an empty form. Empty: records cannot be added by hand."""
    row: Callable[[Row], tuple[str, str | None]]
    """Text and value that the list shows of a record."""
    sort_key: Callable[[int, Row], str | int]
    """Sort key of the list, from the identity and the record."""
    on_insert: Callable[[Handset], Mapping[str, str]] = lambda handset: {}
    """Further fields of a new record."""
    detail: Callable[[Row], list[tuple[str, str]]] | None = None
    """Labels and values that the record's screen shows. ``None`` shows every field."""
    group: str = ""
    """Field that a record shares with the others of its list. ``Screen.of`` is its value."""

    def spec(self, package: str, activity: str, database: db.Database) -> AppSpec:
        """The app with these screens and one database."""
        return AppSpec(
            name=self.app,
            package=package,
            activity=activity,
            build=self.page,
            databases=(database,),
        )

    def page(self, handset: Handset, screen: Screen) -> Page:
        match screen.kind:
            case "form":
                return self._form(handset)
            case "choose":
                field = next(field for field in self.fields if field.key == screen.of)
                return ui.choice_page(field.label, field.key, field.choices)
            case "detail":
                return self._detail(handset.tables[self.table][screen.row], screen.row)
            case "delete":
                name = handset.tables[self.table][screen.row].get(self.fields[0].key, "")
                delete = ui.delete_record(self.table, screen.row, "Deleted")
                return ui.dialog("Delete", f"Delete {name}?", "Delete", delete)
        return self._list(handset, screen.of)

    def _list(self, handset: Handset, group: str) -> Page:
        query = handset.draft.get("search", "").casefold()
        found = [
            (k, record)
            for k, record in handset.tables[self.table].items()
            if (not group or record.get(self.group) == group)
            and (not query or any(query in value.casefold() for value in record.values()))
        ]
        found.sort(key=lambda pair: (self.sort_key(*pair), pair[0]))
        rows = [
            ui.item(*self.row(record), ui.open_screen(self.app, "detail", row=k))
            for k, record in found
        ] or [ui.text_row("Nothing here")]
        add = [ui.icon(self.add, ui.open_screen(self.app, "form"))] if self.add else []
        search = ui.field(handset, "Search", "search")
        return Page(title=self.title, rows=rows, top=[search], bottom=add)

    def _detail(self, record: Row, row: int) -> Page:
        name, *shown = ((field.label, record.get(field.key, "")) for field in self.fields)
        if self.detail is not None:
            shown = self.detail(record)
        rows = [ui.text_row(name[1]), *(ui.text_row(*pair) for pair in shown)]
        delete = ui.button("Delete", ui.open_screen(self.app, "delete", row=row))
        return Page(title=self.title, rows=rows, bottom=[delete])

    def _form(self, handset: Handset) -> Page:
        rows = []
        for field in self.fields:
            if field.choices:
                chosen = handset.draft.get(field.key) or field.choices[0]
                choose = ui.open_screen(self.app, "choose", field.key)
                rows.append(ui.button(chosen, choose, field.label))
            else:
                rows.append(ui.field(handset, field.label, field.key))
        return Page(title=self.add, rows=rows, bottom=[ui.button("Save", self._save)])

    def _save(self, handset: Handset) -> str:
        record: dict[str, str] = {}
        for number, field in enumerate(self.fields):
            default = field.choices[0] if field.choices else ""
            text = (handset.draft.get(field.key) or default).strip()
            if (number == 0 and not text) or not field.is_valid(text):
                return f"{field.label} is not right"
            record[field.key] = text
        handset.insert(self.table, {**record, **self.on_insert(handset)})
        handset.back()
        return "Saved"


def _created(handset: Handset) -> dict[str, str]:
    return dict.fromkeys(("created", "modified"), str(handset.now * 1000))


def _moment(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


CATEGORIES = (
    "Others", "Income", "Food", "Housing", "Social", "Entertainment", "Transportation", "Clothes",
    "Health Care", "Education", "Donation",
)  # fmt: skip
ACCOUNTING = db.single_table(
    "/data/data/com.arduia.expense/databases/accounting.db",
    "expense", "expense_id", "expense",
    (
        db.text("name", "item"), db.cents("amount", "amount"),
        db.numbered("category", "category", CATEGORIES), db.text("note"),
        db.integer("created_date", "created"), db.integer("modified_date", "modified"),
    ),
)  # fmt: skip


_MOST = 10**12
"""Bound of an amount; the database holds its cents as an integer."""


def _amount(typed: str) -> bool:
    try:
        return 0 < Decimal(typed) < _MOST
    except InvalidOperation:
        return False


def _expense(record: Row) -> tuple[str, str]:
    when = _moment(record.get("created", "0"))
    return record["item"], f"${record['amount']} · {record['category']} · {when:%b} {when.day}"


EXPENSE = RecordListApp(
    app="pro expense",
    title="Pro Expense",
    table="expense",
    fields=(
        FormField("item", "Name"),
        FormField("amount", "Amount", (), _amount),
        FormField("category", "Category", CATEGORIES),
        FormField("note", "Note"),
    ),
    add="Add expense",
    row=_expense,
    sort_key=lambda key, record: -int(record.get("created", "0")),
    on_insert=_created,
).spec("com.arduia.expense", "com.arduia.expense.ui.MainActivity", ACCOUNTING)


COOKBOOK = db.single_table(
    "/data/data/com.flauschcode.broccoli/databases/broccoli",
    "recipes", "recipeId", "recipe",
    (
        db.text("title", "dish"), db.text("description"), db.text("servings"),
        db.text("preparationTime", "duration"), db.text("source"), db.text("ingredients"),
        db.text("directions"), db.flag("favorite", "starred"), db.text("imageName", "image"),
    ),
)  # fmt: skip
RECIPES = RecordListApp(
    app="broccoli",
    title="Broccoli",
    table="recipe",
    fields=(
        FormField("dish", "Title"),
        FormField("description", "Description"),
        FormField("source", "Source"),
        FormField("servings", "Servings"),
        FormField("duration", "Preparation time"),
        FormField("ingredients", "Ingredients"),
        FormField("directions", "Directions"),
    ),
    add="New recipe",
    row=lambda record: (record["dish"], record.get("description", "")),
    sort_key=lambda key, record: record["dish"].casefold(),
    on_insert=lambda handset: {"starred": "off", "image": ""},
).spec("com.flauschcode.broccoli", "com.flauschcode.broccoli.MainActivity", COOKBOOK)


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
    moment = record.get(key, "0")
    return f"{_moment(moment):%a %Y-%m-%d %H:%M}" if moment != "0" else "no date"


def _todo(record: Row) -> tuple[str, str]:
    done = int(record.get("completed", "0"))
    priority = PRIORITIES[int(record.get("importance", "3"))]
    state = f" · done {_when(record, 'completed')}" if done else ""
    return record["task"], f"due {_when(record, 'due')} · {priority} priority{state}"


TASKS = RecordListApp(
    app="tasks",
    title="My Tasks",
    table="todo",
    fields=(FormField("task", "Title"), FormField("notes", "Description")),
    add="Create task",
    row=_todo,
    sort_key=lambda key, record: int(record.get("due", "0")),
    on_insert=_created,
).spec("org.tasks", "com.todoroo.astrid.activity.MainActivity", TASK_LIST)


MILE = 1609.34
"""The length of a mile in metres."""
TRACKS = db.single_table(
    "/data/data/de.dennisguse.opentracks/databases/database.db",
    "tracks", "_id", "track",
    (
        db.text("name"), db.text("description"), db.text("category"), db.text("activity_type"),
        db.integer("starttime"), db.integer("stoptime"), db.integer("numpoints"),
        db.real("totaldistance"), db.integer("totaltime"), db.integer("movingtime"),
        db.real("avgspeed"), db.real("avgmovingspeed"), db.real("maxspeed"),
        db.real("minelevation"), db.real("maxelevation"), db.real("elevationgain"),
        db.text("icon", "", None), db.blob("uuid"), db.real("elevationloss"),
        db.integer("starttime_offset"),
    ),
)  # fmt: skip


def _length(record: Row) -> str:
    return f"{float(record['totaldistance']) / MILE:.2f} mi"


def _time(record: Row) -> str:
    minutes, seconds = divmod(int(record["totaltime"]) // 1000, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


def _track(record: Row) -> tuple[str, str]:
    parts = (record["category"], _when(record, "starttime"), _length(record), _time(record))
    return record["name"], " · ".join(parts)


SPORTS = RecordListApp(
    app="opentracks",
    title="OpenTracks",
    table="track",
    fields=(
        FormField("name", "Name"),
        FormField("category", "Activity type"),
        FormField("description", "Description"),
    ),
    row=_track,
    sort_key=lambda key, record: -int(record["starttime"]),
).spec("de.dennisguse.opentracks", "de.dennisguse.opentracks.TrackListActivity", TRACKS)


_SHARED = (
    db.integer("created_time"), db.integer("updated_time"), db.integer("user_created_time"),
    db.integer("user_updated_time"), db.text("encryption_cipher_text"),
    db.integer("encryption_applied"), db.text("parent_id"), db.integer("is_shared"),
    db.text("share_id"), db.text("master_key_id"), db.text("user_data"),
)  # fmt: skip
_NORMALIZED = (
    db.text("id"), db.text("parent_id"), db.text("title"), db.text("body"), db.integer("is_todo"),
    db.integer("todo_completed"), db.integer("user_created_time"), db.integer("user_updated_time"),
    db.real("latitude"), db.real("longitude"), db.real("altitude"), db.text("source_url"),
    db.integer("todo_due"),
)  # fmt: skip
NOTES = db.Database(
    "/data/data/net.cozic.joplin/databases/joplin.sqlite",
    (
        db.SqlTable(
            name="folders", key="rowid", phone_table="notebook",
            columns=(*_SHARED, db.text("id"), db.text("title"), db.integer("deleted_time"),
                     db.text("icon")),
        ),
        db.SqlTable(
            name="notes", key="rowid", phone_table="joplin note",
            columns=(
                *_SHARED, db.text("id"), db.text("title"), db.text("body"), db.integer("is_todo"),
                db.integer("todo_due"), db.integer("todo_completed"), db.integer("is_conflict"),
                db.real("latitude"), db.real("longitude"), db.real("altitude"), db.text("author"),
                db.text("source_url"), db.text("source"), db.text("source_application"),
                db.text("application_data"), db.real("order"),
                db.integer("markup_language", "", 1), db.text("conflict_original_id"),
            ),
        ),
        # The index for the search is derived from the notes, so its table is always empty.
        db.SqlTable(name="notes_normalized", key="rowid", columns=_NORMALIZED),
    ),
)  # fmt: skip


def _note_kind(note: Row) -> str:
    if note.get("is_todo", "0") == "0":
        return "Note"
    return "To-do" if note.get("todo_completed", "0") == "0" else "To-do, done"


NOTE_LIST = RecordListApp(
    app="joplin",
    title="Notes",
    table="joplin note",
    fields=(FormField("title", "Title"), FormField("body", "Body")),
    row=lambda note: (note["title"], _note_kind(note)),
    sort_key=lambda key, note: note["title"].casefold(),
    detail=lambda note: [("Kind", _note_kind(note)), ("Body", note.get("body", ""))],
    group="parent_id",
)


def _joplin(handset: Handset, screen: Screen) -> Page:
    if screen.kind != "list" or screen.of:
        return NOTE_LIST.page(handset, screen)
    books = sorted(handset.tables["notebook"].values(), key=lambda book: book["title"])
    rows = [ui.item("All notes", None, ui.open_screen("joplin", "all"))]
    rows += [
        ui.item(b["title"], "Notebook", ui.open_screen("joplin", "list", b["id"])) for b in books
    ]
    return Page(title="Joplin", rows=rows)


JOPLIN = AppSpec(
    name="joplin",
    package="net.cozic.joplin",
    activity=".MainActivity",
    build=_joplin,
    databases=(NOTES,),
)
