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
from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Page
from swarm_ui.environments.phone.state import Row, Screen


class RecordListApp(msgspec.Struct, frozen=True, kw_only=True):
    """The screens of an app that keeps records of one kind."""

    app: str
    title: str
    table: str
    fields: Mapping[str, str]
    """Labels of the fields. The first field is the name of the record and is required."""
    row: Callable[[Row], tuple[str, str | None]]
    """Text and value that the list shows of a record."""
    sort_key: Callable[[int, Row], str | int]
    """Sort key of the list, from the identity and the record."""
    choices: Mapping[str, tuple[str, ...]] = {}
    """The values of fields to choose from; other fields are typed."""
    is_valid: Mapping[str, Callable[[str], bool]] = {}
    """Checks of typed fields."""
    add: str = ""
    """Text of the button that opens an empty form. Empty: records cannot be added by hand."""
    on_insert: Callable[[Handset], Mapping[str, str]] = lambda handset: {}
    """Further fields of a new record."""
    detail: Callable[[Row], list[tuple[str, str]]] | None = None
    """Labels and values that the record's screen shows. ``None`` shows every field."""
    group: str = ""
    """Field that a record shares with the others of its list. ``Screen.of`` is its value."""

    def spec(self, package: str, activity: str, database: db.Database) -> AppSpec:
        """The app with these screens and one database."""
        return AppSpec(self.app, package, activity, self.page, (database,))

    def page(self, handset: Handset, screen: Screen) -> Page:
        match screen.kind:
            case "form":
                return self._form(handset)
            case "choose":
                return ui.choice_page(self.fields[screen.of], screen.of, self.choices[screen.of])
            case "detail":
                return self._detail(handset.tables[self.table][screen.row], screen.row)
            case "delete":
                name = handset.tables[self.table][screen.row].get(next(iter(self.fields)), "")
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
        name, *shown = ((label, record.get(key, "")) for key, label in self.fields.items())
        if self.detail is not None:
            shown = self.detail(record)
        rows = [ui.text_row(name[1]), *(ui.text_row(*pair) for pair in shown)]
        delete = ui.button("Delete", ui.open_screen(self.app, "delete", row=row))
        return Page(title=self.title, rows=rows, bottom=[delete])

    def _form(self, handset: Handset) -> Page:
        rows = []
        for key, label in self.fields.items():
            if key in self.choices:
                chosen = handset.draft.get(key) or self.choices[key][0]
                choose = ui.open_screen(self.app, "choose", key)
                rows.append(ui.button(chosen, choose, label))
            else:
                rows.append(ui.field(handset, label, key))
        return Page(title=self.add, rows=rows, bottom=[ui.button("Save", self._save)])

    def _save(self, handset: Handset) -> str:
        record: dict[str, str] = {}
        for key, label in self.fields.items():
            default = self.choices.get(key, ("",))[0]
            text = (handset.draft.get(key) or default).strip()
            if not (record or text) or (key in self.is_valid and not self.is_valid[key](text)):
                return f"{label} is not right"
            record[key] = text
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
    fields={"item": "Name", "amount": "Amount", "category": "Category", "note": "Note"},
    choices={"category": CATEGORIES},
    is_valid={"amount": _amount},
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
    fields={
        "dish": "Title", "description": "Description", "source": "Source", "servings": "Servings",
        "duration": "Preparation time", "ingredients": "Ingredients", "directions": "Directions",
    },
    add="New recipe",
    row=lambda record: (record["dish"], record.get("description", "")),
    sort_key=lambda key, record: record["dish"].casefold(),
    on_insert=lambda handset: {"starred": "off", "image": ""},
).spec("com.flauschcode.broccoli", "com.flauschcode.broccoli.MainActivity", COOKBOOK)  # fmt: skip


PRIORITIES = ("high", "medium", "low", "none")
"""Priorities, in the order of their numbers in the database, from 0."""
TASK_LIST = db.single_table(
    "/data/data/org.tasks/databases/database",
    "tasks", "_id", "todo",
    (
        db.text("title", "task", None), db.integer("importance", "", 3),
        db.integer("dueDate", "due"), *db.integers("hideUntil created modified completed deleted"),
        db.text("notes", "", None), *db.integers("estimatedSeconds elapsedSeconds timerStart"),
        *db.integers("notificationFlags lastNotified"), db.text("recurrence", "", None),
        db.integer("repeat_from"), db.text("calendarUri", "", None), db.text("remoteId", "", None),
        *db.integers("collapsed parent"), db.integer("order", "", None), db.integer("read_only"),
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
    fields={"task": "Title", "notes": "Description"},
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
        *db.texts("name description category activity_type"),
        *db.integers("starttime stoptime numpoints"), db.real("totaldistance"),
        *db.integers("totaltime movingtime"), *db.reals("avgspeed avgmovingspeed maxspeed"),
        *db.reals("minelevation maxelevation elevationgain"), db.text("icon", "", None),
        db.blob("uuid"), db.real("elevationloss"), db.integer("starttime_offset"),
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
    fields={"name": "Name", "category": "Activity type", "description": "Description"},
    row=_track,
    sort_key=lambda key, record: -int(record["starttime"]),
).spec("de.dennisguse.opentracks", "de.dennisguse.opentracks.TrackListActivity", TRACKS)


_SHARED = (
    *db.integers("created_time updated_time user_created_time user_updated_time"),
    db.text("encryption_cipher_text"), db.integer("encryption_applied"), db.text("parent_id"),
    db.integer("is_shared"), *db.texts("share_id master_key_id user_data"),
)  # fmt: skip
_NORMALIZED = (
    *db.texts("id parent_id title body"),
    *db.integers("is_todo todo_completed user_created_time user_updated_time"),
    *db.reals("latitude longitude altitude"), db.text("source_url"), db.integer("todo_due"),
)  # fmt: skip
NOTES = db.Database(
    "/data/data/net.cozic.joplin/databases/joplin.sqlite",
    (
        db.SqlTable(
            name="folders", key="rowid", phone_table="notebook",
            columns=(*_SHARED, *db.texts("id title"), db.integer("deleted_time"), db.text("icon")),
        ),
        db.SqlTable(
            name="notes", key="rowid", phone_table="joplin note",
            columns=(
                *_SHARED, *db.texts("id title body"),
                *db.integers("is_todo todo_due todo_completed is_conflict"),
                *db.reals("latitude longitude altitude"),
                *db.texts("author source_url source source_application application_data"),
                db.real("order"), db.integer("markup_language", "", 1),
                db.text("conflict_original_id"),
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
    fields={"title": "Title", "body": "Body"},
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
    "joplin", "net.cozic.joplin", ".MainActivity", _joplin,
    databases=(NOTES,),
)  # fmt: skip
