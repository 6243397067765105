"""Functions that build the widgets of the handset's apps, and functions that several apps share.

``effect`` is an effect, or a function of the handset (see :class:`Call`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from swarm_ui.environments.androidworld.handset.file_system import Database
from swarm_ui.environments.androidworld.handset.handset import Call, Control, Handset, Line, Page
from swarm_ui.environments.phone.effects import Back, Choose
from swarm_ui.environments.phone.state import Effect, Widget

Does = Effect | Callable[[Handset], object]

heading: Callable[..., Widget] = partial(Control, "heading")
text_row: Callable[..., Widget] = partial(Control, "text")
"""A text, and a value below it, that do not react to touches."""


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


def image(description: str) -> Widget:
    return Control("image", "", description=description)


def rows_or(none: str, rows: Sequence[Line]) -> Sequence[Line]:
    """The rows of a list, or a text if there are none."""
    return rows or [text_row(none)]


def go(kind: str, of: str = "", row: int = 0, draft: Mapping[str, str] | None = None) -> Effect:
    """Put a screen of the app on top of the current one; see :meth:`Handset.open`."""
    return Call(Handset.open, kind, of, row, draft)


def tab(text: str, active: bool, kind: str, of: str = "") -> Widget:
    """A tab that puts a screen in place of the app's screens."""
    return Control("tab", text, checked=active, effect=Call(Handset.switch, kind, of))


def tabs(kinds: Mapping[str, str], shown: str) -> Line:
    """A row of tabs, each with the kind of screen that it shows."""
    return tuple(tab(text, kind == shown, kind) for text, kind in kinds.items())


def field(handset: Handset, hint: str, key: str, *, multiline: bool = False) -> Widget:
    """A text field of the current form. A tap moves the focus to it."""
    role, value = "area" if multiline else "field", handset.draft.get(key, "")
    return Control(role, hint, value, field=key, multiline=multiline)  # type: ignore[arg-type]


def options(handset: Handset, key: str, choices: Iterable[str], default: str) -> list[Widget]:
    """Radio buttons that fill a field of the current form."""
    chosen = handset.draft.get(key, default)
    return [radio(choice, choice == chosen, Choose(key, choice)) for choice in choices]


def choice_page(title: str, key: str, choices: Iterable[str]) -> Page:
    """A list of choices. A tap fills a field of the form below and returns to the form."""

    def choose(handset: Handset, value: str) -> None:
        handset.back()
        handset.fill_in(key, value)

    return Page(title=title, rows=[item(one, None, Call(choose, one)) for one in choices])


def answers(accept: Does, yes: str = "OK", no: str = "Cancel", *others: Widget) -> Line:
    """The buttons that leave a form or a question, or accept it, after ``others``."""
    return *others, button(no, Back()), button(yes, accept)


def delete_page(what: str, buttons: Line) -> Page:
    """The question whether to delete something."""
    return Page(title="Delete", rows=[Control("dialog", f"Delete {what}?"), buttons])


def delete_record(database: Database, table: str, row: int, toast: str) -> Effect:
    """Delete a record, then close the dialog and the record's screen."""

    def delete(handset: Handset) -> str:
        database.run(handset, f'DELETE FROM "{table}" WHERE rowid = {row}')
        handset.show(handset.stack[:-2])
        return toast

    return Call(delete)


def typed_file_name(handset: Handset) -> str:
    """The field ``name`` of the current form, or ``""`` if it is not a valid file name."""
    typed = handset.draft.get("name", "").strip()
    return "" if "/" in typed or typed in (".", "..") else typed
