"""Contacts, a phone that calls nobody, and Simple SMS Messenger.

The messages are shown as conversations, and as the SQLite database of Android's telephony provider.
"""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset import widgets as ui
from swarm_ui.environments.androidworld.handset.databases import Database, Row, table
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
    match screen.kind:
        case "form":
            return _form(handset)
        case "label":
            return ui.choice_page("Select label", "label", LABELS)
        case "detail":
            record = PEOPLE.rows(handset, "people")[screen.row]
            rows = [ui.text_row(record["phone"], record["label"])]
            rows += [ui.text_row(record["email"], "Email")] if record["email"] else []
            return Page(title=record["name"], rows=rows)
    people = PEOPLE.rows(handset, "people").items()
    rows = [
        ui.item(row["name"], None, ui.open_screen("contacts", "detail", row=key))
        for key, row in sorted(people, key=lambda pair: pair[1]["name"].casefold())
    ]
    add = ui.icon("Create contact", ui.open_screen("contacts", "form", draft={"label": "Mobile"}))
    return Page(title="Contacts", rows=rows or [ui.text_row("No contacts")], bottom=[add])


def _form(handset: Handset) -> Page:
    label = handset.draft.get("label", "Mobile")
    rows = [
        ui.field(handset, "First name", "first"),
        ui.field(handset, "Last name", "last"),
        ui.field(handset, "Phone", "phone"),
        ui.button(label, ui.open_screen("contacts", "label"), f"{label} Phone"),
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
    identity = PEOPLE.insert(handset, "people", record)
    handset.show((*handset.stack[:-1], Screen("contacts", "detail", "", identity)))
    return "Contact saved"


def _insert(handset: Handset, intent: Intent) -> None:
    first, _, last = intent.extras.get("name", "").partition(" ")
    draft = {"first": first, "last": last, "phone": intent.extras.get("phone", "")}
    handset.launch("contacts")
    handset.show((*handset.stack, Screen("contacts", "form")), {**draft, "label": "Mobile"})


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
    if screen.kind in ("new", "thread"):
        return _new(handset) if screen.kind == "new" else _thread(handset, screen.of)
    latest: dict[str, str] = {}
    for row in newest(handset):
        latest.setdefault(row["address"], row["body"])
    rows = [
        ui.item(name_of(handset, n), body, ui.open_screen(MESSAGES, "thread", n))
        for n, body in latest.items()
    ]
    add = ui.icon("New conversation", ui.open_screen(MESSAGES, "new"))
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
    handset.show((*handset.stack[:-1], Screen(MESSAGES, "thread", number)))


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
    body = intent.extras.get("sms_body", "")
    handset.show((*handset.stack, Screen(MESSAGES, "thread", number)), {"text": body})


MESSENGER = AppSpec(
    MESSAGES, "com.simplemobiletools.smsmessenger",
    "com.simplemobiletools.smsmessenger.activities.MainActivity", _messages,
    databases=(TELEPHONY,),
    providers=("com.android.providers.telephony",),
    intents={"android.intent.action.SENDTO sms:": _send_to},
)  # fmt: skip
