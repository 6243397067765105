"""The on-screen keyboard. It is five elements; a tap by pixels types a letter."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.device.effects import Focus, TypeCharacter
from swarm_ui.environments.phone.device.widget import Widget

LETTERS = ("1234567890", "qwertyuiop", "asdfghjkl'", "zxcvbnm,.-")
"""Rows of the keyboard, ten keys each."""
KEY_TOP = 812
KEY_ROW = 62
KEY_WIDTH = 54

_PAD = Widget("image", "", description="keyboard", zone="key")
_HIDE = Widget("button", "hide keyboard", effect=Focus(""), zone="key")
_SPACE = Widget("button", "space", effect=TypeCharacter(" "), zone="key")
_ERASE = Widget("button", "backspace", effect=TypeCharacter(""), zone="key")


def keyboard(content: Sequence[Widget], focus: str) -> list[Widget]:
    """The keys shown while a field has the focus.

    In a search field, enter starts the search. In other fields it moves the focus to the next
    field, and in the last field it hides the keyboard.
    """
    fields = [widget for widget in content if widget.field is not None]
    names = [widget.field or "" for widget in fields]
    if focus not in names:
        return []
    at = names.index(focus)
    after = names[at + 1] if at + 1 < len(names) else ""
    effect = fields[at].submit or Focus(after)
    return [_PAD, Widget("button", "enter", effect=effect, zone="key"), _HIDE, _SPACE, _ERASE]


def key_at(x: int, y: int) -> str:
    """The character of the key at these pixels, or an empty string."""
    row, column = (y - KEY_TOP) // KEY_ROW, x // KEY_WIDTH
    if 0 <= row < len(LETTERS) and 0 <= column < len(LETTERS[row]):
        return LETTERS[row][column]
    return ""
