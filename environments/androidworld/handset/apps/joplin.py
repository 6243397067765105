"""Joplin: notes and to-dos in notebooks."""

from __future__ import annotations

from uuid import UUID

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.record_list import FormField, RecordListApp
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Handset, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Row, Screen

APP = "joplin"
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


def _kind(note: Row) -> str:
    if note.get("is_todo", "0") == "0":
        return "Note"
    return "To-do" if note.get("todo_completed", "0") == "0" else "To-do, done"


def _new(handset: Handset) -> Row:
    """The initial fields of a new note: the notebook on the screen (or else the first one) as its
    parent, a new id, and that it is no to-do."""
    shown = [screen.of for screen in handset.stack if screen.kind == "list"]
    books = [book["id"] for book in handset.tables["notebook"].values()]
    parent = next(filter(None, (*reversed(shown), *books)), "")
    return {"parent_id": parent, "is_todo": "0", "id": UUID(int=handset.next_row).hex}


LIST = RecordListApp(
    app=APP,
    title="Notes",
    table="joplin note",
    fields=(FormField("title", "Title"), FormField("body", "Body")),
    add="New note",
    row=lambda note: (note["title"], _kind(note)),
    sort_key=lambda key, note: note["title"].casefold(),
    on_insert=_new,
    detail=lambda note: [("Kind", _kind(note)), ("Body", note.get("body", ""))],
    group="parent_id",
)


def _build(handset: Handset, screen: Screen) -> Page:
    if screen.kind != "list" or screen.of:
        return LIST.page(handset, screen)
    books = sorted(handset.tables["notebook"].values(), key=lambda book: book["title"])
    rows = [ui.item("All notes", None, ui.open_screen(APP, "all"))]
    rows += [ui.item(b["title"], "Notebook", ui.open_screen(APP, "list", b["id"])) for b in books]
    return Page(title="Joplin", rows=rows)


JOPLIN = AppSpec(
    name=APP, package="net.cozic.joplin", activity=".MainActivity", build=_build, databases=(NOTES,)
)
