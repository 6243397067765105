"""Pieces that the editions of the apps are built from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from swarm_ui.environments.androidworld.handset.handset import Control, Do, Handset, Line, Page
from swarm_ui.environments.phone.device.effects import Back, Choose, Go
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Effect, Widget


def button(text: str, effect: Effect, description: str = "") -> Widget:
    return Control("button", text, None, None, effect, description=description)


def icon(description: str, effect: Effect) -> Widget:
    """A button that shows a picture; its words are in its description."""
    return Control("icon", "", None, None, effect, description=description)


def item(text: str, value: str | None, effect: Effect, hold: Effect | None = None) -> Widget:
    return Control("item", text, value, None, effect, hold=hold)


def told(text: str, value: str | None = None) -> Widget:
    """Something to read."""
    return Control("text", text, value, quiet=True)


def heading(text: str) -> Widget:
    return Control("heading", text, quiet=True)


def field(handset: Handset, hint: str, key: str, *, lines: bool = False) -> Widget:
    """A field of the form in front; a tap moves the focus there."""
    value = handset.draft.get(key, "")
    return Control("area" if lines else "field", hint, value, None, None, key, lines=lines)


def options(handset: Handset, key: str, choices: Iterable[str], default: str) -> list[Widget]:
    """Radio buttons that fill a field of the form in front."""
    chosen = handset.draft.get(key, default)
    return [Control("radio", c, None, c == chosen, Choose(key, c)) for c in choices]


def switch(text: str, on: bool, effect: Effect) -> Widget:
    return Control("switch", text, None, on, effect)


def dialog(title: str, question: str, yes: str, accept: Effect, no: str = "Cancel") -> Page:
    """A question with two answers."""
    rows: list[Line] = [Control("dialog", question, quiet=True)]
    return Page(title=title, rows=[*rows, (button(no, Back()), button(yes, accept))])


def go(screen: Screen, draft: Mapping[str, str] | None = None) -> Go:
    return Go(screen, draft or {})


def do(run: Callable[[Handset], object]) -> Do:
    return Do(run)


def drop(handset: Handset, levels: int, toast: str = "") -> None:
    """Leave as many screens, the one in front first."""
    handset.show(handset.stack[: len(handset.stack) - levels])
    handset.toast = toast
