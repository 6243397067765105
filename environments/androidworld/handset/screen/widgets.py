"""Functions that build the widgets of the handset's apps, and functions that several apps share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from swarm_ui.environments.androidworld.handset.handset import Call, Control, Handset, Line, Page
from swarm_ui.environments.phone.effects import Back, Choose, Go
from swarm_ui.environments.phone.state import Effect, Screen, Widget
from swarm_ui.observation import Role


def button(text: str, effect: Effect, description: str = "") -> Widget:
    return Control("button", text, None, None, effect, description=description)


def icon(description: str, effect: Effect) -> Widget:
    """A button that shows a picture and is named by its description."""
    return Control("icon", "", None, None, effect, description=description)


def item(text: str, value: str | None, effect: Effect, long_press: Effect | None = None) -> Widget:
    return Control("item", text, value, None, effect, long_press=long_press)


def text_row(text: str, value: str | None = None) -> Widget:
    """A row of text that does not react to touches."""
    return Control("text", text, value)


def heading(text: str) -> Widget:
    return Control("heading", text)


def image(description: str) -> Widget:
    return Control("image", "", description=description)


def tab(text: str, active: bool, effect: Effect) -> Widget:
    return Control("tab", text, None, active, effect)


def tabs(app: str, kinds: Mapping[str, str], shown: str) -> Line:
    """A row of tabs, each with the kind of screen that it shows."""

    def switch_to(handset: Handset, kind: str) -> None:
        handset.show((Screen(app, kind),))

    return tuple(
        tab(text, kind == shown, Call(partial(switch_to, kind=kind)))
        for text, kind in kinds.items()
    )


def field(handset: Handset, hint: str, key: str, *, multiline: bool = False) -> Widget:
    """A text field of the current form. A tap moves the focus to it."""
    value = handset.draft.get(key, "")
    role: Role = "area" if multiline else "field"
    return Control(role, hint, value, None, None, key, multiline=multiline)


def options(handset: Handset, key: str, choices: Iterable[str], default: str) -> list[Widget]:
    """Radio buttons that fill a field of the current form."""
    chosen = handset.draft.get(key, default)
    return [Control("radio", c, None, c == chosen, Choose(key, c)) for c in choices]


def switch(text: str, on: bool, effect: Effect) -> Widget:
    return Control("switch", text, None, on, effect)


def dialog(title: str, question: str, yes: str, accept: Effect, no: str = "Cancel") -> Page:
    """A dialog: a question with two answers."""
    rows: list[Line] = [Control("dialog", question)]
    return Page(title=title, rows=[*rows, (button(no, Back()), button(yes, accept))])


def choice_page(title: str, key: str, choices: Iterable[str]) -> Page:
    """A list of choices. A tap fills a field of the form below and returns to the form."""

    def choose(handset: Handset, value: str) -> None:
        handset.back()
        handset.draft = {**handset.draft, key: value}

    rows = [item(choice, None, Call(partial(choose, value=choice))) for choice in choices]
    return Page(title=title, rows=rows)


def open_screen(
    app: str, kind: str, of: str = "", *, row: int = 0, draft: Mapping[str, str] | None = None
) -> Effect:
    """Put a screen on top of the current one, with a form that is filled from ``draft``."""
    return Go(Screen(app, kind, of, row), draft or {})


def delete_record(table: str, row: int, toast: str) -> Effect:
    """Delete a record, then close the dialog and the record's screen."""

    def delete(handset: Handset) -> str:
        handset.remove(table, row)
        handset.show(handset.stack[:-2])
        return toast

    return Call(delete)


def typed_file_name(handset: Handset) -> str:
    """The field ``name`` of the current form, or ``""`` if it is not a valid file name."""
    typed = handset.draft.get("name", "").strip()
    return "" if "/" in typed or typed in (".", "..") else typed
