"""What fingers and keys do to a handset."""

from __future__ import annotations

from swarm_ui.environments.androidworld.handset.errors import UnsupportedCommand
from swarm_ui.environments.androidworld.handset.handset import Control, Handset
from swarm_ui.environments.androidworld.handset.screen.geometry import (
    SCALE,
    TOP,
    Placed,
    ScreenGeometry,
    lay_out,
)

LONG_PRESS_MS = 500
SLOP = 24
"""Pixels a finger may move in a tap."""
_KEYS = {
    "3": "HOME", "4": "BACK", "6": "ENDCALL", "61": "TAB", "62": "SPACE", "66": "ENTER",
    "67": "DEL", "82": "MENU", "111": "ESCAPE", "122": "MOVE_HOME", "123": "MOVE_END",
    "187": "APP_SWITCH", "224": "WAKEUP", "277": "CUT", "278": "COPY", "279": "PASTE",
}  # fmt: skip
_COMBINATIONS = {("113", "29"): "select all", ("113", "31"): "copy", ("113", "50"): "paste"}
_SILENT = frozenset(("MENU", "WAKEUP", "MOVE_END", "TAB"))


def tap(handset: Handset, x: float, y: float) -> str:
    """One short touch; returns a note, empty if there is nothing to say."""
    glass = _touched(handset)
    if len(handset.stack) > 1 and x < 120 and (TOP - 60) * SCALE <= y < TOP * SCALE:
        back(handset)
        return ""
    one = glass.at(x, y)
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
    return widget.effect.apply(handset) if widget.effect is not None else "nothing happened"


def hold(handset: Handset, x: float, y: float) -> str:
    """A long press: on a field it selects all its text, elsewhere what the app makes of it."""
    one = lay_out(handset).at(x, y)
    if one is None:
        return tap(handset, x, y)
    if one.widget.field is not None:
        _touched(handset)
        handset.focus = one.widget.field
        handset.selecting = True
        return ""
    effect = one.widget.hold if isinstance(one.widget, Control) else None
    if effect is None:
        return tap(handset, x, y)  # Android takes it for a click where nobody listens for it
    _touched(handset)
    return effect.apply(handset)


def swipe(
    handset: Handset, start: tuple[float, float], end: tuple[float, float], milliseconds: int = 300
) -> str:
    """A finger drawn over the glass; one that stays in its place taps or presses."""
    across, along = end[0] - start[0], end[1] - start[1]
    if abs(across) <= SLOP and abs(along) <= SLOP:
        press = hold if milliseconds >= LONG_PRESS_MS else tap
        return press(handset, *start)
    glass = _touched(handset)
    one = glass.at(*start)
    if abs(across) > abs(along):
        if one is not None and isinstance(one.widget, Control) and one.widget.slider is not None:
            left, _, right, _ = one.pixels
            one.widget.slider(handset, min(1.0, max(0.0, (end[0] - left) / (right - left))))
            return ""
        return "nothing to scroll there"
    page = glass.page + (1 if along < 0 else -1)
    if not 0 <= page < glass.pages:
        return "nothing to scroll there"
    handset.page = page
    return ""


def type_text(handset: Handset, text: str) -> str:
    """Letters from a keyboard, into the field in focus."""
    if not handset.focus:
        handset.toast = ""
        return "no field is in focus"
    _touched(handset)
    before = "" if handset.selecting else handset.draft.get(handset.focus, "")
    handset.draft = {**handset.draft, handset.focus: before + text}
    handset.selecting = False
    return ""


def back(handset: Handset) -> None:
    """Leave what is over the screen, or the screen."""
    if handset.selecting:
        handset.selecting = False
    elif handset.picked and handset.stack and handset.stack[-1].kind == "list":
        handset.picked = frozenset()
    else:
        handset.back()


def press(handset: Handset, key: str) -> str:
    """One key, by name or number.

    Raises:
        UnsupportedCommand: the key is not known here.
    """
    plain = key.upper().removeprefix("KEYCODE_")
    name = _KEYS.get(plain, plain)
    if name not in _KEYS.values():
        known = ", ".join(sorted(set(_KEYS.values())))
        raise UnsupportedCommand(f"shell input keyevent {key}", f"known keys: {known}")
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
    """Keys pressed together.

    Raises:
        UnsupportedCommand: the combination is not known here.
    """
    known = _COMBINATIONS.get(keys[:2]) if len(keys) == 2 else None
    if known is None:
        raise UnsupportedCommand(
            f"shell input keycombination {' '.join(keys)}",
            "known: 113 29 (select all), 113 31 (copy), 113 50 (paste)",
        )
    if known == "select all":
        handset.selecting = bool(handset.focus)
    else:
        _edit(handset, known.upper())


def _touched(handset: Handset) -> ScreenGeometry:
    """What was seen when the touch came; from now on the last short message is gone."""
    glass = lay_out(handset)
    handset.toast = ""
    handset.now += 1
    return glass


def _enter(handset: Handset) -> str:
    one = _focused(handset)
    if one is None:
        return "no field is in focus"
    if isinstance(one.widget, Control) and one.widget.lines:
        return type_text(handset, "\n")
    _touched(handset)
    if one.widget.submit is not None:
        return one.widget.submit.apply(handset)
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
