"""Contacts: the phone's people, with first and last name apart. Phone: who is calling."""

from __future__ import annotations

from functools import partial

from swarm_ui.environments.androidworld.handset.handset import (
    Control,
    Edition,
    Handset,
    Intent,
    Line,
    Page,
)
from swarm_ui.environments.androidworld.handset.screen.widgets import (
    button,
    dialog,
    do,
    drop,
    field,
    go,
    icon,
    item,
    told,
)
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget

APP = "contacts"
LABELS = ("Mobile", "Home", "Work", "Other")


def name_of(handset: Handset, number: str) -> str:
    """Who has a number; the number itself if nobody does."""
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
        rows = [item(label, None, do(partial(_label, label=label))) for label in LABELS]
        return Page(title="Select label", rows=rows)
    if screen.kind == "detail":
        return _detail(handset, screen.row)
    if screen.kind == "delete":
        name = handset.tables["contact"][screen.row]["name"]
        yes = do(partial(_delete, row=screen.row))
        return dialog("Delete contact?", f"{name} will be deleted", "Delete", yes)
    people = sorted(handset.tables["contact"].items(), key=lambda pair: pair[1]["name"].casefold())
    rows = [item(row["name"], None, go(Screen(APP, "detail", "", k))) for k, row in people]
    empty: list[Widget] = [] if rows else [told("No contacts")]
    add = icon("Create contact", go(Screen(APP, "form"), {"label": "Mobile"}))
    return Page(title="Contacts", rows=[*rows, *empty], bottom=[add])


def _form(handset: Handset, row: int) -> Page:
    label = handset.draft.get("label", "Mobile")
    rows: list[Line] = [
        field(handset, "First name", "first"),
        field(handset, "Last name", "last"),
        field(handset, "Phone", "phone"),
        button(label, go(Screen(APP, "label")), f"{label} Phone"),
        field(handset, "Email", "email"),
    ]
    save = button("Save", do(partial(_save, row=row)))
    return Page(title="Edit contact" if row else "Create contact", rows=rows, top=[save])


def _label(handset: Handset, label: str) -> None:
    handset.back()
    handset.draft = {**handset.draft, "label": label}


def _save(handset: Handset, row: int) -> None:
    draft = handset.draft
    name = " ".join(f"{draft.get('first', '')} {draft.get('last', '')}".split())
    phone = draft.get("phone", "").strip()
    if not name and not phone:
        handset.toast = "Nothing to save"
        return
    record = {
        "name": name or phone,
        "phone": phone,
        "email": draft.get("email", "").strip(),
        "label": draft.get("label", "Mobile"),
    }
    if row:
        handset.update("contact", row, record)
        drop(handset, 1, "Contact saved")
        return
    identity = handset.insert("contact", {**record, "favorite": "off"})
    handset.show((*handset.stack[:-1], Screen(APP, "detail", "", identity)))
    handset.toast = "Contact saved"


def _detail(handset: Handset, row: int) -> Page:
    record = handset.tables["contact"][row]
    first, _, last = record["name"].partition(" ")
    draft = {"first": first, "last": last, "label": record.get("label", "Mobile")}
    draft |= {key: record[key] for key in ("phone", "email")}
    rows: list[Line] = [told(record["phone"], draft["label"])]
    if record["email"]:
        rows.append(told(record["email"], "Email"))
    edit = icon("Edit contact", go(Screen(APP, "form", "", row), draft))
    delete = button("Delete", go(Screen(APP, "delete", "", row)))
    return Page(title=record["name"], rows=rows, top=[edit], bottom=[delete])


def _delete(handset: Handset, row: int) -> None:
    handset.remove("contact", row)
    drop(handset, 2, "1 contact deleted")


def _insert(handset: Handset, intent: Intent) -> None:
    first, _, last = intent.extras.get("name", "").partition(" ")
    draft = {"first": first, "last": last, "phone": intent.extras.get("phone", "")}
    handset.launch(APP)
    handset.show((*handset.stack, Screen(APP, "form")), {**draft, "label": "Mobile"})


def _dialer(handset: Handset, screen: Screen) -> Page:
    if handset.call:
        end = button("End call", do(_hang_up))
        return Page(title="Call", rows=[told(name_of(handset, handset.call)), end])
    keys = [tuple("123"), tuple("456"), tuple("789"), tuple("*0#")]
    rows: list[Line] = [field(handset, "Number", "number")]
    rows += [tuple(Control("button", k, effect=do(partial(_dial, key=k))) for k in r) for r in keys]
    return Page(title="Phone", rows=rows, bottom=[icon("dial", do(_call))])


def _dial(handset: Handset, key: str) -> None:
    handset.draft = {**handset.draft, "number": handset.draft.get("number", "") + key}


def _call(handset: Handset) -> None:
    handset.call = handset.draft.get("number", "")


def _hang_up(handset: Handset) -> None:
    handset.call = ""


CONTACTS = Edition(
    app=APP,
    package="com.google.android.contacts",
    activity="com.android.contacts.activities.PeopleActivity",
    build=_build,
    data=("contact",),
    providers=("com.android.providers.contacts",),
    intents={
        "android.intent.action.INSERT vnd.android.cursor.dir/contact": _insert,
        "android.intent.action.VIEW content://contacts/": lambda h, _: h.launch(APP),
    },
)
DIALER = Edition(
    app="phone",
    package="com.google.android.dialer",
    activity="com.google.android.dialer.extensions.GoogleDialtactsActivity",
    build=_dialer,
)
