"""Functions that build the widgets of the handset's apps, and functions that several apps share.

``effect`` is an effect, or a function of the handset (see :class:`Call`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from swarm_ui.environments.androidworld.handset.databases import Database
from swarm_ui.environments.androidworld.handset.handset import Call, Control, Handset, Line, Page
from swarm_ui.environments.phone.effects import Back, Choose, Go
from swarm_ui.environments.phone.state import Effect, Screen, Widget

Does = Effect | Callable[[Handset], object]


def _effect(does: Does) -> Effect:
    return does if hasattr(does, "apply") else Call(does)


def button(text: str, effect: Does, description: str = "") -> Widget:
    return Control("button", text, effect=_effect(effect), description=description)


def icon(description: str, effect: Does) -> Widget:
    """A button that shows a picture and is named by its description."""
    return Control("icon", "", effect=_effect(effect), description=description)


def item(text: str, value: str | None, effect: Does, long_press: Effect | None = None) -> Widget:
    return Control("item", text, value, effect=_effect(effect), long_press=long_press)


def checkbox(text: str, ticked: bool, effect: Effect) -> Widget:
    """A ticked or unticked row; a long press does the same as a tap."""
    return Control("checkbox", text, checked=ticked, effect=effect, long_press=effect)


def radio(text: str, chosen: bool, effect: Effect) -> Widget:
    return Control("radio", text, checked=chosen, effect=effect)


def text_row(text: str, value: str | None = None) -> Widget:
    """A row of text that does not react to touches."""
    return Control("text", text, value)


def heading(text: str) -> Widget:
    return Control("heading", text)


def image(description: str) -> Widget:
    return Control("image", "", description=description)


def show(app: str, kind: str, of: str = "") -> Effect:
    """Put a screen in place of the app's screens."""
    return Call(Handset.show, (Screen(app, kind, of),))


def tab(text: str, active: bool, effect: Effect) -> Widget:
    return Control("tab", text, checked=active, effect=effect)


def tabs(app: str, kinds: Mapping[str, str], shown: str) -> Line:
    """A row of tabs, each with the kind of screen that it shows."""
    return tuple(tab(text, kind == shown, show(app, kind)) for text, kind in kinds.items())


def field(handset: Handset, hint: str, key: str, *, multiline: bool = False) -> Widget:
    """A text field of the current form. A tap moves the focus to it."""
    role, value = "area" if multiline else "field", handset.draft.get(key, "")
    return Control(role, hint, value, field=key, multiline=multiline)  # type: ignore[arg-type]


def options(handset: Handset, key: str, choices: Iterable[str], default: str) -> list[Widget]:
    """Radio buttons that fill a field of the current form."""
    chosen = handset.draft.get(key, default)
    return [radio(choice, choice == chosen, Choose(key, choice)) for choice in choices]


def dialog(title: str, question: str, yes: str, accept: Does, no: str = "Cancel") -> Page:
    """A dialog: a question with two answers."""
    answers = button(no, Back()), button(yes, accept)
    return Page(title=title, rows=[Control("dialog", question), answers])


def choice_page(title: str, key: str, choices: Iterable[str]) -> Page:
    """A list of choices. A tap fills a field of the form below and returns to the form."""

    def choose(handset: Handset, value: str) -> None:
        handset.back()
        handset.fill_in(key, value)

    return Page(title=title, rows=[item(one, None, Call(choose, one)) for one in choices])


def open_screen(
    app: str, kind: str, of: str = "", *, row: int = 0, draft: Mapping[str, str] | None = None
) -> Effect:
    """Put a screen on top of the current one, with a form that is filled from ``draft``."""
    return Go(Screen(app, kind, of, row), draft or {})


def delete_record(database: Database, table: str, row: int, toast: str) -> Effect:
    """Delete a record, then close the dialog and the record's screen."""

    def delete(handset: Handset) -> str:
        database.delete(handset, table, row)
        handset.show(handset.stack[:-2])
        return toast

    return Call(delete)


def typed_file_name(handset: Handset) -> str:
    """The field ``name`` of the current form, or ``""`` if it is not a valid file name."""
    typed = handset.draft.get("name", "").strip()
    return "" if "/" in typed or typed in (".", "..") else typed
