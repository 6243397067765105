"""Contacts, a phone that calls nobody, and Simple SMS Messenger.

The messages are shown as conversations, and as the SQLite database of Android's telephony provider.
"""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.file_system import Database, Row, table
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Intent, Page
from swarm_ui.environments.phone.state import Screen, Widget

LABELS = ("Mobile", "Home", "Work", "Other")
PEOPLE = Database(
    "/data/data/com.android.providers.contacts/databases/contacts2.db",
    table("people", "_id", text="name phone email label"),
)


def name_of(handset: Handset, number: str) -> str:
    """Name of the contact with a number, or the number if no contact has it."""
    for row in PEOPLE.rows(handset, "people").values():
        if digits(row["phone"]) == digits(number):
            return str(row["name"])
    return number


def digits(number: str) -> str:
    return "".join(char for char in number if char.isdigit() or char == "+")


def _contacts(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "form":
        return _form(handset)
    if screen.kind == "label":
        return ui.choice_page("Select label", "label", LABELS)
    people = PEOPLE.rows(handset, "people")
    if screen.kind == "detail":
        record = people[screen.row]
        said = ((record["phone"], record["label"]), (record["email"], "Email"))
        rows = [ui.text_row(*pair) for pair in said[: 2 if record["email"] else 1]]
        return Page(title=record["name"], rows=rows)
    rows = [
        ui.item(row["name"], None, ui.go("detail", row=key))
        for key, row in sorted(people.items(), key=lambda pair: pair[1]["name"].casefold())
    ]
    add = ui.icon("Create contact", ui.go("form", draft={"label": "Mobile"}))
    return Page(title="Contacts", rows=ui.rows_or("No contacts", rows), bottom=[add])


def _form(handset: Handset) -> Page:
    label = handset.draft.get("label", "Mobile")
    rows = [
        ui.field(handset, "First name", "first"),
        ui.field(handset, "Last name", "last"),
        ui.field(handset, "Phone", "phone"),
        ui.button(label, ui.go("label"), f"{label} Phone"),
        ui.field(handset, "Email", "email"),
    ]
    return Page(title="Create contact", rows=rows, top=[ui.button("Save", _save)])


def _save(handset: Handset) -> str:
    draft = handset.draft
    name = " ".join(f"{draft.get('first', '')} {draft.get('last', '')}".split())
    phone = draft.get("phone", "").strip()
    if not name and not phone:
        return "Nothing to save"
    email, label = draft.get("email", "").strip(), draft.get("label", "Mobile")
    record = {"name": name or phone, "phone": phone, "email": email, "label": label}
    handset.back()
    handset.open("detail", row=PEOPLE.insert(handset, "people", record))
    return "Contact saved"


def _insert(handset: Handset, intent: Intent) -> None:
    first, _, last = intent.extras.get("name", "").partition(" ")
    draft = {"first": first, "last": last, "phone": intent.extras.get("phone", "")}
    handset.launch("contacts")
    handset.open("form", draft={**draft, "label": "Mobile"})


CONTACTS = AppSpec(
    "contacts", "com.google.android.contacts",
    "com.android.contacts.activities.PeopleActivity", _contacts,
    databases=(PEOPLE,),
    providers=("com.android.providers.contacts",),
    intents={
        "android.intent.action.INSERT vnd.android.cursor.dir/contact": _insert,
        "android.intent.action.VIEW content://contacts/": lambda h, _: h.launch("contacts"),
    },
)  # fmt: skip
DIALER = AppSpec(
    "phone", "com.google.android.dialer",
    "com.google.android.dialer.extensions.GoogleDialtactsActivity",
    lambda h, _: Page(title="Phone", rows=[ui.field(h, "Number", "number")]),
)  # fmt: skip


MESSAGES = "simple sms messenger"
TELEPHONY = Database(
    "/data/data/com.android.providers.telephony/databases/mmssms.db",
    table("sms", "_id", text="address",
          integer="thread_id date date_sent locked", other="person INTEGER, protocol INTEGER, "
          "read INTEGER DEFAULT 1, status INTEGER DEFAULT -1, type INTEGER DEFAULT 1, "
          "reply_path_present INTEGER, subject TEXT, body TEXT DEFAULT '', service_center TEXT, "
          "sub_id INTEGER DEFAULT 1, error_code INTEGER DEFAULT -1, "
          "creator TEXT DEFAULT 'com.simplemobiletools.smsmessenger', seen INTEGER DEFAULT 1")
    # The conversations are derived from the messages, so no screen reads their table.
    + table("threads", "_id", integer="date", text="recipient_ids"),
)  # fmt: skip
INBOX, SENT = 1, 2
"""The type of a message."""


def store(handset: Handset, number: str, body: str, box: int) -> None:
    """Add a message that was sent or received."""
    number = digits(number) or number
    rows = TELEPHONY.rows(handset, "sms").values()
    fresh = 1 + max([0, *(row["thread_id"] for row in rows)])
    thread = next((row["thread_id"] for row in rows if row["address"] == number), fresh)
    when = dict.fromkeys(("date", "date_sent"), handset.now * 1000)
    row = {"address": number, "body": body, "type": box, "thread_id": thread, **when}
    TELEPHONY.insert(handset, "sms", row)


def newest(handset: Handset) -> list[Row]:
    """All messages, the newest first."""
    rows = TELEPHONY.rows(handset, "sms").values()
    return sorted(rows, key=lambda row: (row["date"] or 0, row["_id"]), reverse=True)


def _messages(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "new":
        return _new(handset)
    if screen.kind == "thread":
        return _thread(handset, screen.of)
    latest: dict[str, str] = {}
    for row in newest(handset):
        latest.setdefault(row["address"], row["body"])
    rows = [ui.item(name_of(handset, n), body, ui.go("thread", n)) for n, body in latest.items()]
    add = ui.icon("New conversation", ui.go("new"))
    return Page(title="Messages", rows=rows, bottom=[add])


def _new(handset: Handset) -> Page:
    typed = handset.draft.get("to", "")
    rows: list[Widget] = []
    if digits(typed):
        rows.append(ui.item(f"Send to {typed}", None, Call(_open, digits(typed))))
    for row in PEOPLE.rows(handset, "people").values():
        if typed.strip().casefold() in row["name"].casefold():
            rows.append(ui.item(row["name"], row["phone"], Call(_open, digits(row["phone"]))))
    to = ui.field(handset, "Add Contact or Number…", "to")
    return Page(title="New conversation", rows=rows, top=[to])


def _open(handset: Handset, number: str) -> None:
    handset.back()
    handset.open("thread", number)


def _thread(handset: Handset, number: str) -> Page:
    name = name_of(handset, number)
    rows = [
        ui.text_row(row["body"], "You" if row["type"] == SENT else name)
        for row in reversed(newest(handset))
        if row["address"] == number
    ]
    write = ui.field(handset, "Type a message…", "text")
    send = ui.button("SMS", Call(_send, number), "Send")
    return Page(title=name, rows=rows, bottom=[write, send])


def _send(handset: Handset, number: str) -> str:
    body = handset.draft.get("text", "")
    if not body.strip():
        return "The message is empty"
    store(handset, number, body, SENT)
    handset.draft = {}
    return ""


def _send_to(handset: Handset, intent: Intent) -> None:
    number = digits(intent.data.partition(":")[2])
    handset.launch(MESSAGES)
    handset.open("thread", number, draft={"text": intent.extras.get("sms_body", "")})


MESSENGER = AppSpec(
    MESSAGES, "com.simplemobiletools.smsmessenger",
    "com.simplemobiletools.smsmessenger.activities.MainActivity", _messages,
    databases=(TELEPHONY,),
    providers=("com.android.providers.telephony",),
    intents={"android.intent.action.SENDTO sms:": _send_to},
)  # fmt: skip
