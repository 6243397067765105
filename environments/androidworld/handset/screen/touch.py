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


def tap(handset: Handset, x: float, y: float) -> None:
    """A short touch."""
    one = _touched(handset).at(x, y)
    if len(handset.stack) > 1 and x < 120 and (TOP - 60) * SCALE <= y < TOP * SCALE:
        back(handset)
    elif one is not None and one.widget.field is not None:
        handset.focus = one.widget.field
        handset.selecting = False
    elif one is not None and not _slide(handset, one, x) and one.widget.effect is not None:
        one.widget.effect.apply(handset)


def _slide(handset: Handset, one: Placed, x: float) -> bool:
    """Move a slider to a position. Returns whether the widget is one."""
    slider = one.widget.slider if isinstance(one.widget, Control) else None
    if slider is not None:
        left, _, right, _ = one.pixels
        slider(handset, min(1.0, max(0.0, (x - left) / (right - left))))
    return slider is not None


def long_press(handset: Handset, x: float, y: float) -> None:
    """A long press. It selects the text of a field, or runs the widget's ``long_press``."""
    one = lay_out(handset).at(x, y)
    effect = one.widget.long_press if one and isinstance(one.widget, Control) else None
    if one is not None and one.widget.field is not None:
        _touched(handset)
        handset.focus = one.widget.field
        handset.selecting = True
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
    one = geometry.at(*start)
    page = geometry.page + (1 if along < 0 else -1)
    if abs(across) <= abs(along) and 0 <= page < geometry.pages:
        handset.page = page
    elif abs(across) > abs(along) and one is not None:
        _slide(handset, one, end[0])


def type_text(handset: Handset, text: str) -> None:
    """Type a text into the field in focus."""
    if not handset.focus:
        handset.toast = ""
        return
    _touched(handset)
    before = "" if handset.selecting else handset.draft.get(handset.focus, "")
    handset.draft = {**handset.draft, handset.focus: before + text}
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
    elif name == "ENDCALL":
        handset.call = ""
    elif name in ("DEL", "CUT", "COPY", "PASTE", "SPACE"):
        _edit(handset, name)


def combine(handset: Handset, keys: tuple[str, ...]) -> None:
    """Press several keys together.

    Raises:
        UnsupportedArguments: the handset does not support the combination.
    """
    known = _COMBINATIONS.get(keys[:2]) if len(keys) == 2 else None
    if known is None:
        raise UnsupportedArguments(
            "expected one of 113 29 (select all), 113 31 (copy), 113 50 (paste)"
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


def _enter(handset: Handset) -> None:
    placed = lay_out(handset).placed if handset.focus else ()
    widget = next((one.widget for one in placed if one.widget.field == handset.focus), None)
    if isinstance(widget, Control) and widget.multiline:
        type_text(handset, "\n")
    elif widget is not None:
        _touched(handset)
        if widget.submit is not None:
            widget.submit.apply(handset)


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
