"""Contacts: the phone's contacts with first and last names. Phone: a dialer and the call."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.handset import (
    AppSpec,
    Call,
    Handset,
    Intent,
    Line,
    Page,
)
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Screen

APP = "contacts"
LABELS = ("Mobile", "Home", "Work", "Other")


def name_of(handset: Handset, number: str) -> str:
    """Name of the contact with a number, or the number if no contact has it."""
    for row in handset.tables["contact"].values():
        if digits(row["phone"]) == digits(number):
            return row["name"]
    return number


def digits(number: str) -> str:
    return "".join(char for char in number if char.isdigit() or char == "+")


def _build(handset: Handset, screen: Screen) -> Page:
    if screen.kind == "form":
        return _form(handset, screen.row)
    if screen.kind == "label":
        return ui.choice_page("Select label", "label", LABELS)
    if screen.kind == "detail":
        return _detail(handset, screen.row)
    if screen.kind == "delete":
        name = handset.tables["contact"][screen.row]["name"]
        yes = ui.delete_record("contact", screen.row, "1 contact deleted")
        return ui.dialog("Delete contact?", f"{name} will be deleted", "Delete", yes)
    people = sorted(handset.tables["contact"].items(), key=lambda pair: pair[1]["name"].casefold())
    rows = [ui.item(row["name"], None, ui.open_screen(APP, "detail", row=k)) for k, row in people]
    add = ui.icon("Create contact", ui.open_screen(APP, "form", draft={"label": "Mobile"}))
    return Page(title="Contacts", rows=rows or [ui.text_row("No contacts")], bottom=[add])


def _form(handset: Handset, row: int) -> Page:
    label = handset.draft.get("label", "Mobile")
    rows: list[Line] = [
        ui.field(handset, "First name", "first"),
        ui.field(handset, "Last name", "last"),
        ui.field(handset, "Phone", "phone"),
        ui.button(label, ui.open_screen(APP, "label"), f"{label} Phone"),
        ui.field(handset, "Email", "email"),
    ]
    save = ui.button("Save", Call(partial(_save, row=row)))
    return Page(title="Edit contact" if row else "Create contact", rows=rows, top=[save])


def _save(handset: Handset, row: int) -> str:
    draft = handset.draft
    name = " ".join(f"{draft.get('first', '')} {draft.get('last', '')}".split())
    phone = draft.get("phone", "").strip()
    if not name and not phone:
        return "Nothing to save"
    email, label = draft.get("email", "").strip(), draft.get("label", "Mobile")
    record = {"name": name or phone, "phone": phone, "email": email, "label": label}
    if row:
        handset.update("contact", row, record)
        handset.back()
    else:
        identity = handset.insert("contact", {**record, "favorite": "off"})
        handset.show((*handset.stack[:-1], Screen(APP, "detail", "", identity)))
    return "Contact saved"


def _detail(handset: Handset, row: int) -> Page:
    record = handset.tables["contact"][row]
    first, _, last = record["name"].partition(" ")
    draft = {"first": first, "last": last, "label": record.get("label", "Mobile")}
    draft |= {key: record[key] for key in ("phone", "email")}
    rows: list[Line] = [ui.text_row(record["phone"], draft["label"])]
    if record["email"]:
        rows.append(ui.text_row(record["email"], "Email"))
    edit = ui.icon("Edit contact", ui.open_screen(APP, "form", row=row, draft=draft))
    delete = ui.button("Delete", ui.open_screen(APP, "delete", row=row))
    return Page(title=record["name"], rows=rows, top=[edit], bottom=[delete])


def _insert(handset: Handset, intent: Intent) -> None:
    first, _, last = intent.extras.get("name", "").partition(" ")
    draft = {"first": first, "last": last, "phone": intent.extras.get("phone", "")}
    handset.launch(APP)
    handset.show((*handset.stack, Screen(APP, "form")), {**draft, "label": "Mobile"})


def _dialer(handset: Handset, screen: Screen) -> Page:
    if handset.call:
        end = ui.button("End call", Call(partial(_call, number="")))
        return Page(title="Call", rows=[ui.text_row(name_of(handset, handset.call)), end])
    number = handset.draft.get("number", "")
    rows: list[Line] = [ui.field(handset, "Number", "number")]
    for keys in ("123", "456", "789", "*0#"):
        rows.append(tuple(ui.button(key, Call(partial(_dial, key=key))) for key in keys))
    return Page(
        title="Phone", rows=rows, bottom=[ui.icon("dial", Call(partial(_call, number=number)))]
    )


def _dial(handset: Handset, key: str) -> None:
    handset.draft = {**handset.draft, "number": handset.draft.get("number", "") + key}


def _call(handset: Handset, number: str) -> None:
    handset.call = number


CONTACTS = AppSpec(
    name=APP,
    package="com.google.android.contacts",
    activity="com.android.contacts.activities.PeopleActivity",
    build=_build,
    tables=("contact",),
    providers=("com.android.providers.contacts",),
    intents={
        "android.intent.action.INSERT vnd.android.cursor.dir/contact": _insert,
        "android.intent.action.VIEW content://contacts/": lambda h, _: h.launch(APP),
    },
)
DIALER = AppSpec(
    name="phone",
    package="com.google.android.dialer",
    activity="com.google.android.dialer.extensions.GoogleDialtactsActivity",
    build=_dialer,
)
