"""Apps that keep records of one kind: a list with a search field, a record, and a form.

Pro Expense, Broccoli (recipes), Tasks, OpenTracks, which records nothing, since the handset has no
GPS, and Joplin, whose notes are in notebooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

import msgspec

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.file_system import Database, Row, table
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Page
from swarm_ui.environments.phone.state import Screen


class RecordListApp(msgspec.Struct, frozen=True, kw_only=True):
    """The screens of an app that keeps records of one kind."""

    title: str
    database: Database
    table: str
    fields: Mapping[str, str]
    """Labels of the fields, by their columns. The first is the name of the record and is required.
    """
    row: Callable[[Row], tuple[str, str | None]]
    """Text and value that the list shows of a record."""
    sort_key: Callable[[Row], str | int]
    choices: Mapping[str, tuple[str, ...]] = {}
    """The values of fields to choose from; stored is their position, counted from 1."""
    amounts: tuple[str, ...] = ()
    """Fields with amounts of money; stored are the cents."""
    add: str = ""
    """Text of the button that opens an empty form. Empty: records cannot be added by hand."""
    times: tuple[str, ...] = ()
    """Columns with the time at which a record was made, in milliseconds."""
    group: str = ""
    """Column that a record shares with the others of its list. ``Screen.of`` is its value."""

    def spec(self, app: str, package: str, activity: str) -> AppSpec:
        """The app with these screens."""
        return AppSpec(app, package, activity, self.page, (self.database,))

    def page(self, handset: Handset, screen: Screen) -> Page:
        if screen.kind == "form":
            return self._form(handset)
        if screen.kind == "choose":
            return ui.choice_page(self.fields[screen.of], screen.of, self.choices[screen.of])
        if screen.kind not in ("detail", "delete"):
            return self._list(handset, screen.of)
        record = self.database.rows(handset, self.table)[screen.row]
        first, *others = self.fields
        if screen.kind == "delete":
            delete = ui.delete_record(self.database, self.table, screen.row, "Deleted")
            return ui.delete_page(record[first], ui.answers(delete, "Delete"))
        rows = [ui.text_row(self._said(record, first))]
        rows += [ui.text_row(self.fields[key], self._said(record, key)) for key in others]
        button = ui.button("Delete", ui.go("delete", row=screen.row))
        return Page(title=self.title, rows=rows, bottom=[button])

    def _list(self, handset: Handset, group: str) -> Page:
        query = handset.draft.get("search", "").casefold()
        found = [
            (self.sort_key(record), key, record)
            for key, record in self.database.rows(handset, self.table).items()
            if (not group or record[self.group] == group)
            and (not query or any(query in str(value).casefold() for value in record.values()))
        ]
        found.sort(key=lambda one: one[:2])
        rows = [ui.item(*self.row(record), ui.go("detail", row=key)) for _, key, record in found]
        add = [ui.icon(self.add, ui.go("form"))] if self.add else []
        search = ui.field(handset, "Search", "search")
        shown = ui.rows_or("Nothing here", rows)
        return Page(title=self.title, rows=shown, top=[search], bottom=add)

    def _said(self, record: Row, key: str) -> str:
        value = record[key]
        if key in self.choices:
            return _named(self.choices[key], value)
        return "" if value is None else f"{value / 100:.2f}" if key in self.amounts else str(value)

    def _form(self, handset: Handset) -> Page:
        rows = []
        for key, label in self.fields.items():
            if key in self.choices:
                chosen = handset.draft.get(key) or self.choices[key][0]
                rows.append(ui.button(chosen, ui.go("choose", key), label))
            else:
                rows.append(ui.field(handset, label, key))
        return Page(title=self.add, rows=rows, bottom=[ui.button("Save", self._save)])

    def _save(self, handset: Handset) -> str:
        record: dict[str, object] = {}
        for key, label in self.fields.items():
            typed = handset.draft.get(key, "").strip()
            if key in self.choices:
                record[key] = 1 + self.choices[key].index(typed or self.choices[key][0])
                continue
            record[key] = cents(typed) if key in self.amounts else typed
            if record[key] is None or not any(record.values()):
                return f"{label} is not right"
        made = dict.fromkeys(self.times, handset.now * 1000)
        self.database.insert(handset, self.table, {**record, **made})
        handset.back()
        return "Saved"


def cents(typed: str) -> int | None:
    """The cents of an amount of money; ``None`` if the text is none."""
    try:
        amount = Decimal(typed)
        return round(amount * 100) if 0 < amount < _MOST else None
    except InvalidOperation:
        return None


def _named(names: tuple[str, ...], number: object) -> str:
    """The name with this number, counted from 1."""
    return dict(enumerate(names, start=1)).get(number, "") if isinstance(number, int) else ""


def _moment(milliseconds: int | None) -> datetime:
    return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC)


_MOST = 10**12
"""Bound of an amount; the database holds its cents as an integer."""
CATEGORIES = (
    "Others", "Income", "Food", "Housing", "Social", "Entertainment", "Transportation", "Clothes",
    "Health Care", "Education", "Donation",
)  # fmt: skip


def _expense(record: Row) -> tuple[str, str]:
    when, category = _moment(record["created_date"]), _named(CATEGORIES, record["category"])
    return record["name"], f"${record['amount'] / 100:.2f} · {category} · {when:%b} {when.day}"


EXPENSE = RecordListApp(
    title="Pro Expense",
    database=Database(
        "/data/data/com.arduia.expense/databases/accounting.db",
        table("expense", "expense_id", text="name note",
              integer="amount category created_date modified_date"),
    ),
    table="expense",
    fields={"name": "Name", "amount": "Amount", "category": "Category", "note": "Note"},
    choices={"category": CATEGORIES},
    amounts=("amount",),
    add="Add expense",
    row=_expense,
    sort_key=lambda record: -(record["created_date"] or 0),
    times=("created_date", "modified_date"),
).spec("pro expense", "com.arduia.expense", "com.arduia.expense.ui.MainActivity")  # fmt: skip


RECIPES = RecordListApp(
    title="Broccoli",
    database=Database(
        "/data/data/com.flauschcode.broccoli/databases/broccoli",
        table("recipes", "recipeId", integer="favorite", text="title description servings "
              "preparationTime source ingredients directions imageName"),
    ),
    table="recipes",
    fields={
        "title": "Title", "description": "Description", "source": "Source", "servings": "Servings",
        "preparationTime": "Preparation time", "ingredients": "Ingredients",
        "directions": "Directions",
    },
    add="New recipe",
    row=lambda record: (record["title"], record["description"] or ""),
    sort_key=lambda record: str(record["title"]).casefold(),
).spec("broccoli", "com.flauschcode.broccoli", "com.flauschcode.broccoli.MainActivity")  # fmt: skip


PRIORITIES = ("high", "medium", "low", "none")
"""Priorities, in the order of their numbers in the database, from 0."""


def _when(moment: int | None) -> str:
    return f"{_moment(moment):%a %Y-%m-%d %H:%M}" if moment else "no date"


def _todo(record: Row) -> tuple[str, str]:
    done = record["completed"]
    state = f" · done {_when(done)}" if done else ""
    priority = PRIORITIES[record["importance"]]
    return record["title"], f"due {_when(record['dueDate'])} · {priority} priority{state}"


TASKS = RecordListApp(
    title="My Tasks",
    database=Database(
        "/data/data/org.tasks/databases/database",
        table("tasks", "_id", other='title TEXT, importance INTEGER DEFAULT 3, notes TEXT, '
              'recurrence TEXT, calendarUri TEXT, remoteId TEXT, "order" INTEGER',
              integer="dueDate hideUntil created modified completed deleted estimatedSeconds "
              "elapsedSeconds timerStart notificationFlags lastNotified repeat_from collapsed "
              "parent read_only"),
    ),
    table="tasks",
    fields={"title": "Title", "notes": "Description"},
    add="Create task",
    row=_todo,
    sort_key=lambda record: record["dueDate"] or 0,
    times=("created", "modified"),
).spec("tasks", "org.tasks", "com.todoroo.astrid.activity.MainActivity")  # fmt: skip


MILE = 1609.34
"""The length of a mile in metres."""


def _track(record: Row) -> tuple[str, str]:
    minutes, seconds = divmod(record["totaltime"] // 1000, 60)
    parts = (
        record["category"],
        _when(record["starttime"]),
        f"{record['totaldistance'] / MILE:.2f} mi",
        f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}",
    )
    return record["name"], " · ".join(parts)


# fmt: off
SPORTS = RecordListApp(
    title="OpenTracks",
    database=Database(
        "/data/data/de.dennisguse.opentracks/databases/database.db",
        table("tracks", "_id", text="name description category activity_type",
              integer="starttime stoptime numpoints totaltime movingtime starttime_offset",
              real="totaldistance avgspeed avgmovingspeed maxspeed minelevation maxelevation "
              "elevationgain elevationloss", other="icon TEXT, uuid BLOB DEFAULT x''"),
    ),
    table="tracks",
    fields={"name": "Name", "category": "Activity type", "description": "Description"},
    row=_track,
    sort_key=lambda record: -record["starttime"],
).spec("opentracks", "de.dennisguse.opentracks", "de.dennisguse.opentracks.TrackListActivity")
# fmt: on


_TEXTS = "encryption_cipher_text parent_id share_id master_key_id user_data id title"
_TIMES = (
    "created_time updated_time user_created_time user_updated_time encryption_applied is_shared"
)
NOTES = Database(
    "/data/data/net.cozic.joplin/databases/joplin.sqlite",
    table("folders", text=f"{_TEXTS} icon", integer=f"{_TIMES} deleted_time")
    + table("notes", text=f"{_TEXTS} body author source_url source source_application "
            "application_data conflict_original_id", real="latitude longitude altitude order",
            integer=f"{_TIMES} is_todo todo_due todo_completed is_conflict",
            other="markup_language INTEGER DEFAULT 1")
    # The index for the search is derived from the notes, so no screen reads its table.
    + table("notes_normalized", text="id parent_id title body source_url",
            real="latitude longitude altitude",
            integer="is_todo todo_completed user_created_time user_updated_time todo_due"),
)  # fmt: skip


def _note_kind(note: Row) -> str:
    if not note["is_todo"]:
        return "Note"
    return "To-do, done" if note["todo_completed"] else "To-do"


NOTE_LIST = RecordListApp(
    title="Notes",
    database=NOTES,
    table="notes",
    fields={"title": "Title", "body": "Body"},
    row=lambda note: (note["title"], _note_kind(note)),
    sort_key=lambda note: str(note["title"]).casefold(),
    group="parent_id",
)


def _joplin(handset: Handset, screen: Screen) -> Page:
    if screen.kind != "list" or screen.of:
        return NOTE_LIST.page(handset, screen)
    books = sorted(NOTES.rows(handset, "folders").values(), key=lambda book: str(book["title"]))
    rows = [ui.item("All notes", None, ui.go("all"))]
    rows += [ui.item(b["title"], "Notebook", ui.go("list", b["id"])) for b in books]
    return Page(title="Joplin", rows=rows)


JOPLIN = AppSpec("joplin", "net.cozic.joplin", ".MainActivity", _joplin, databases=(NOTES,))
