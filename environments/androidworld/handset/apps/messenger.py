"""Simple SMS Messenger: shows the messages of the handset as conversations, and as the SQLite
database of Android's telephony provider."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset import databases as db
from swarm_ui.environments.androidworld.handset.apps.contacts import digits, name_of
from swarm_ui.environments.androidworld.handset.handset import (
    AppSpec,
    Call,
    Control,
    Handset,
    Intent,
    Line,
    Page,
)
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Row, Screen, Widget

APP = "simple sms messenger"

SMS = db.SqlTable(
    name="sms",
    key="_id",
    phone_table="message",
    columns=(
        db.integer("thread_id", "thread"), db.text("address", "to"), db.integer("person", "", None),
        db.integer("date"), db.integer("date_sent"), db.integer("protocol", "", None),
        db.integer("read", "", 1), db.integer("status", "", -1),
        db.numbered("type", "box", ("inbox", "sent")),
        db.integer("reply_path_present", "", None), db.text("subject", "", None),
        db.text("body", "text"), db.text("service_center", "", None), db.integer("locked"),
        db.integer("sub_id", "", 1), db.integer("error_code", "", -1),
        db.text("creator", "", "com.simplemobiletools.smsmessenger"), db.integer("seen", "", 1),
    ),
)  # fmt: skip
TELEPHONY = db.Database(
    "/data/data/com.android.providers.telephony/databases/mmssms.db",
    (
        SMS,
        # The conversations are derived from the messages, so their table is always empty.
        db.SqlTable(
            name="threads", key="_id", columns=(db.integer("date"), db.text("recipient_ids"))
        ),
    ),
)


def store(handset: Handset, number: str, body: str, box: str) -> None:
    """Add a message that was sent or received."""
    number = digits(number) or number
    rows = handset.tables["message"].values()
    fresh = str(1 + max([0, *(int(row["thread"]) for row in rows)]))
    thread = next((row["thread"] for row in rows if row["to"] == number), fresh)
    when = str(handset.now * 1000)
    row = {"to": number, "text": body, "box": box, "thread": thread}
    handset.insert("message", {**row, "date": when, "date_sent": when})


def newest(handset: Handset) -> list[tuple[int, Row]]:
    """All messages, the newest first."""
    rows = handset.tables.get("message", {}).items()
    return sorted(rows, key=lambda pair: (int(pair[1].get("date", "0")), pair[0]), reverse=True)


def _build(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "new":
        return _new(handset)
    if screen.kind == "thread":
        return _thread(handset, screen.of)
    latest: dict[str, str] = {}
    for _, row in newest(handset):
        latest.setdefault(row["to"], row["text"])
    rows = [
        ui.item(name_of(handset, n), body, ui.open_screen(APP, "thread", n))
        for n, body in latest.items()
    ]
    add = ui.icon("New conversation", ui.open_screen(APP, "new"))
    return Page(title="Messages", rows=rows, bottom=[add])


def _new(handset: Handset) -> Page:
    typed = handset.draft.get("to", "")
    rows: list[Widget] = []
    if digits(typed):
        rows.append(ui.item(f"Send to {typed}", None, Call(partial(_open, number=digits(typed)))))
    for row in handset.tables["contact"].values():
        if typed.strip().casefold() in row["name"].casefold():
            effect = Call(partial(_open, number=digits(row["phone"])))
            rows.append(ui.item(row["name"], row["phone"], effect))
    to = ui.field(handset, "Add Contact or Number…", "to")
    return Page(title="New conversation", rows=rows, top=[to])


def _open(handset: Handset, number: str) -> None:
    handset.show((*handset.stack[:-1], Screen(APP, "thread", number)))


def _thread(handset: Handset, number: str) -> Page:
    rows: list[Line] = []
    for _, row in reversed(newest(handset)):
        if row["to"] == number:
            who = "You" if row["box"] == "sent" else name_of(handset, number)
            copy = Call(partial(_copy, body=row["text"]))
            rows.append(Control("text", row["text"], who, long_press=copy, read_only=True))
    write = ui.field(handset, "Type a message…", "text")
    send = ui.button("SMS", Call(partial(_send, number=number)), "Send")
    return Page(title=name_of(handset, number), rows=rows, bottom=[write, send])


def _send(handset: Handset, number: str) -> str:
    body = handset.draft.get("text", "")
    if not body.strip():
        return "The message is empty"
    store(handset, number, body, "sent")
    handset.draft = {}
    return ""


def _copy(handset: Handset, body: str) -> str:
    handset.clipboard = body
    return "Value copied to clipboard"


def _send_to(handset: Handset, intent: Intent) -> None:
    number = digits(intent.data.partition(":")[2])
    handset.launch(APP)
    body = intent.extras.get("sms_body", "")
    handset.show((*handset.stack, Screen(APP, "thread", number)), {"text": body})


MESSENGER = AppSpec(
    name=APP,
    package="com.simplemobiletools.smsmessenger",
    activity="com.simplemobiletools.smsmessenger.activities.MainActivity",
    build=_build,
    databases=(TELEPHONY,),
    providers=("com.android.providers.telephony",),
    intents={"android.intent.action.SENDTO sms:": _send_to},
)
