"""Touches and keys of a handset."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.errors import UnsupportedArguments
from swarm_ui.environments.androidworld.handset.handset import Control, Handset
from swarm_ui.environments.androidworld.handset.screen.geometry import (
    SCALE,
    TOP,
    ScreenGeometry,
    lay_out,
)

LONG_PRESS_MS = 500
TOUCH_SLOP = 24
"""Pixels that a finger may move during a tap."""
_KEYS = {"3": "HOME", "4": "BACK", "61": "TAB", "66": "ENTER", "67": "DEL"}


def tap(handset: Handset, x: float, y: float) -> None:
    """A short touch."""
    one = _touched(handset).at(x, y)
    if len(handset.stack) > 1 and x < 120 and (TOP - 60) * SCALE <= y < TOP * SCALE:
        back(handset)
    elif one is not None and one.widget.field is not None:
        handset.focus, handset.selecting = one.widget.field, False
    elif one is not None and one.widget.effect is not None:
        one.widget.effect.apply(handset)


def long_press(handset: Handset, x: float, y: float) -> None:
    """A long press. It selects the text of a field, or runs the widget's ``long_press``."""
    one = lay_out(handset).at(x, y)
    effect = one.widget.long_press if one and isinstance(one.widget, Control) else None
    if one is not None and one.widget.field is not None:
        _touched(handset)
        handset.focus, handset.selecting = one.widget.field, True
    elif effect is not None:
        _touched(handset)
        effect.apply(handset)
    else:
        tap(handset, x, y)  # as on Android, for a widget without a long press


def swipe(
    handset: Handset, start: tuple[float, float], end: tuple[float, float], milliseconds: int = 300
) -> None:
    """A swipe. A finger that moves less than :data:`TOUCH_SLOP` taps or presses long."""
    across, along = end[0] - start[0], end[1] - start[1]
    if abs(across) <= TOUCH_SLOP and abs(along) <= TOUCH_SLOP:
        (long_press if milliseconds >= LONG_PRESS_MS else tap)(handset, *start)
        return
    geometry = _touched(handset)
    page = geometry.page + (1 if along < 0 else -1)
    if abs(across) <= abs(along) and 0 <= page < geometry.pages:
        handset.page = page


def type_text(handset: Handset, text: str) -> None:
    """Type a text into the field in focus."""
    if not handset.focus:
        handset.toast = ""
        return
    _touched(handset)
    before = "" if handset.selecting else handset.draft.get(handset.focus, "")
    handset.fill_in(handset.focus, before + text)
    handset.selecting = False


def back(handset: Handset) -> None:
    """Close the selection, or else leave the screen."""
    if handset.selecting:
        handset.selecting = False
    elif handset.picked and handset.stack and handset.stack[-1].kind == "list":
        handset.picked = frozenset()
    else:
        handset.back()


def press(handset: Handset, key: str) -> None:
    """Press a key, given by its name or number.

    Raises:
        UnsupportedArguments: the handset does not support the key.
    """
    plain = key.upper().removeprefix("KEYCODE_")
    name = _KEYS.get(plain, plain)
    if name not in _KEYS.values():
        known = ", ".join(sorted(set(_KEYS.values())))
        raise UnsupportedArguments(f"key {key!r} is not supported; expected one of {known}")
    if name == "ENTER":
        _enter(handset)
        return
    _touched(handset)
    if name == "HOME":
        handset.show(())
    elif name == "BACK":
        back(handset)
    elif name == "DEL":
        _delete(handset)


def combine(handset: Handset, keys: tuple[str, ...]) -> None:
    """Press several keys together.

    Raises:
        UnsupportedArguments: they are not those that select all text.
    """
    if keys != ("113", "29"):
        raise UnsupportedArguments("expected 113 29 (select all)")
    handset.selecting = bool(handset.focus)


def _touched(handset: Handset) -> ScreenGeometry:
    """The screen at the time of a touch. The touch takes a second and removes the toast."""
    geometry = lay_out(handset)
    handset.toast = ""
    handset.now += 1
    return geometry


def _enter(handset: Handset) -> None:
    placed = lay_out(handset).placed if handset.focus else ()
    widget = next((one.widget for one in placed if one.widget.field == handset.focus), None)
    if isinstance(widget, Control) and widget.multiline:
        type_text(handset, "\n")
    elif widget is not None:
        _touched(handset)
        if widget.submit is not None:
            widget.submit.apply(handset)


def _delete(handset: Handset) -> None:
    """Delete the selected text, or the last letter."""
    if handset.focus:
        text = handset.draft.get(handset.focus, "")
        handset.fill_in(handset.focus, "" if handset.selecting else text[:-1])
        handset.selecting = False
