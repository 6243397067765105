"""Touches and keys of a handset."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.errors import UnsupportedArguments
from swarm_ui.environments.androidworld.handset.handset import Control, Handset
from swarm_ui.environments.androidworld.handset.screen.geometry import (
    SCALE,
    TOP,
    Placed,
    ScreenGeometry,
    lay_out,
)

LONG_PRESS_MS = 500
TOUCH_SLOP = 24
"""Pixels that a finger may move during a tap."""
_KEYS = {
    "3": "HOME", "4": "BACK", "6": "ENDCALL", "61": "TAB", "62": "SPACE", "66": "ENTER",
    "67": "DEL", "82": "MENU", "111": "ESCAPE", "122": "MOVE_HOME", "123": "MOVE_END",
    "187": "APP_SWITCH", "224": "WAKEUP", "277": "CUT", "278": "COPY", "279": "PASTE",
}  # fmt: skip
_COMBINATIONS = {("113", "29"): "select all", ("113", "31"): "copy", ("113", "50"): "paste"}
_SILENT = frozenset(("MENU", "WAKEUP", "MOVE_END", "TAB"))


def tap(handset: Handset, x: float, y: float) -> str:
    """A short touch. Returns a note; it is empty if the touch did what it should."""
    geometry = _touched(handset)
    if len(handset.stack) > 1 and x < 120 and (TOP - 60) * SCALE <= y < TOP * SCALE:
        back(handset)
        return ""
    one = geometry.at(x, y)
    if one is None:
        return "nothing there"
    widget = one.widget
    if widget.field is not None:
        handset.focus = widget.field
        handset.selecting = False
        return ""
    if isinstance(widget, Control) and widget.slider is not None:
        left, _, right, _ = one.pixels
        widget.slider(handset, (x - left) / (right - left))
        return ""
    return "nothing happened" if widget.effect is None else widget.effect.apply(handset) or ""


def long_press(handset: Handset, x: float, y: float) -> str:
    """A long press. It selects the text of a field, or runs the widget's ``long_press``."""
    one = lay_out(handset).at(x, y)
    if one is None:
        return tap(handset, x, y)
    if one.widget.field is not None:
        _touched(handset)
        handset.focus = one.widget.field
        handset.selecting = True
        return ""
    effect = one.widget.long_press if isinstance(one.widget, Control) else None
    if effect is None:
        return tap(handset, x, y)  # as on Android, for a widget without a long press
    _touched(handset)
    return effect.apply(handset) or ""


def swipe(
    handset: Handset, start: tuple[float, float], end: tuple[float, float], milliseconds: int = 300
) -> str:
    """A swipe. A finger that moves less than :data:`TOUCH_SLOP` taps or presses long."""
    across, along = end[0] - start[0], end[1] - start[1]
    if abs(across) <= TOUCH_SLOP and abs(along) <= TOUCH_SLOP:
        press = long_press if milliseconds >= LONG_PRESS_MS else tap
        return press(handset, *start)
    geometry = _touched(handset)
    one = geometry.at(*start)
    if abs(across) > abs(along):
        if one is not None and isinstance(one.widget, Control) and one.widget.slider is not None:
            left, _, right, _ = one.pixels
            one.widget.slider(handset, min(1.0, max(0.0, (end[0] - left) / (right - left))))
            return ""
        return "nothing to scroll there"
    page = geometry.page + (1 if along < 0 else -1)
    if not 0 <= page < geometry.pages:
        return "nothing to scroll there"
    handset.page = page
    return ""


def type_text(handset: Handset, text: str) -> str:
    """Type a text into the field in focus."""
    if not handset.focus:
        handset.toast = ""
        return "no field is in focus"
    _touched(handset)
    before = "" if handset.selecting else handset.draft.get(handset.focus, "")
    handset.draft = {**handset.draft, handset.focus: before + text}
    handset.selecting = False
    return ""


def back(handset: Handset) -> None:
    """Close the selection, or else leave the screen."""
    if handset.selecting:
        handset.selecting = False
    elif handset.picked and handset.stack and handset.stack[-1].kind == "list":
        handset.picked = frozenset()
    else:
        handset.back()


def press(handset: Handset, key: str) -> str:
    """Press a key, given by its name or number.

    Raises:
        UnsupportedArguments: the handset does not support the key.
    """
    plain = key.upper().removeprefix("KEYCODE_")
    name = _KEYS.get(plain, plain)
    if name not in _KEYS.values():
        known = ", ".join(sorted(set(_KEYS.values())))
        raise UnsupportedArguments(f"known keys: {known}")
    if name == "ENTER":
        return _enter(handset)
    _touched(handset)
    if name == "HOME":
        handset.show(())
    elif name == "BACK":
        back(handset)
    elif name == "ENDCALL":
        handset.call = ""
    elif name in ("DEL", "CUT", "COPY", "PASTE", "SPACE"):
        _edit(handset, name)
    elif name not in _SILENT:
        return "nothing happened"
    return ""


def combine(handset: Handset, keys: tuple[str, ...]) -> None:
    """Press several keys together.

    Raises:
        UnsupportedArguments: the handset does not support the combination.
    """
    known = _COMBINATIONS.get(keys[:2]) if len(keys) == 2 else None
    if known is None:
        raise UnsupportedArguments(
            "known: 113 29 (select all), 113 31 (copy), 113 50 (paste)",
        )
    if known == "select all":
        handset.selecting = bool(handset.focus)
    else:
        _edit(handset, known.upper())


def _touched(handset: Handset) -> ScreenGeometry:
    """The screen at the time of a touch. The touch takes a second and removes the toast."""
    geometry = lay_out(handset)
    handset.toast = ""
    handset.now += 1
    return geometry


def _enter(handset: Handset) -> str:
    one = _focused(handset)
    if one is None:
        return "no field is in focus"
    if isinstance(one.widget, Control) and one.widget.multiline:
        return type_text(handset, "\n")
    _touched(handset)
    if one.widget.submit is not None:
        return one.widget.submit.apply(handset) or ""
    return ""


def _focused(handset: Handset) -> Placed | None:
    if not handset.focus:
        return None
    placed = lay_out(handset).placed
    return next((one for one in placed if one.widget.field == handset.focus), None)


def _edit(handset: Handset, key: str) -> None:
    if not handset.focus:
        return
    text = handset.draft.get(handset.focus, "")
    if key in ("CUT", "COPY"):
        handset.clipboard = text
    if key == "PASTE":
        text = handset.clipboard if handset.selecting else text + handset.clipboard
    elif key == "SPACE":
        text += " "
    elif key != "COPY":
        text = "" if handset.selecting or key == "CUT" else text[:-1]
    handset.draft = {**handset.draft, handset.focus: text}
    handset.selecting = False
