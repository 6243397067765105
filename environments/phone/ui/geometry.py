"""Size of the screen, and the bounds and elements of the full device."""

from __future__ import annotations

from functools import lru_cache

from swarm_ui.environments.phone.device.widget import Widget, Zone
from swarm_ui.observation import Element

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""
WIDTH, HEIGHT = 540, 1200
MARGIN, TOP, STEP = 20, 116, 60
"""Left margin, first row, and distance of rows in pixels."""
DIALOG_TOP = 440
LETTERS = ("1234567890", "qwertyuiop", "asdfghjkl'", "zxcvbnm,.-")
"""Rows of the keyboard, ten keys each."""
KEY_TOP = 812
KEY_ROW = 62
KEY_WIDTH = 54
_KEYS = KEY_TOP + 4 * KEY_ROW
_STATUS: tuple[Box, ...] = (
    (14, 6, 110, 40),
    (WIDTH - 90, 6, WIDTH - 10, 40),
    (WIDTH - 140, 6, WIDTH - 94, 40),
    (120, 6, 200, 40),
)
_KEY_BOXES: tuple[Box, ...] = (
    (0, KEY_TOP, WIDTH, _KEYS - 2),
    (424, _KEYS, 536, _KEYS + 58),
    (4, _KEYS, 116, _KEYS + 58),
    (120, _KEYS, 300, _KEYS + 58),
    (304, _KEYS, 420, _KEYS + 58),
)
_LOW_TOAST: Box = (90, 1066, WIDTH - 90, 1114)
_HIGH_TOAST: Box = (90, KEY_TOP - 54, WIDTH - 90, KEY_TOP - 6)
_HEADING: Box = (64, 52, WIDTH - MARGIN, 104)
_GRID = {"icon": (4, 125, 150, 16, 92, 122), "tile": (3, 168, 190, 4, 156, 182)}
"""Columns, distance of columns and of rows, left, width and height of icons and thumbnails."""


@lru_cache(maxsize=4096)
def boxes(zones: tuple[Zone, ...]) -> tuple[Box, ...]:
    """Bounds of widgets in these zones: rows from the top, icons and thumbnails in a grid."""
    found: list[Box] = []
    y, column, status, key = TOP, 0, 0, 0
    last = "row"
    for zone in zones:
        if last in _GRID and zone != last and column:
            y, column = y + _GRID[last][2], 0
        if zone in ("row", "dialog", "hero"):
            y = DIALOG_TOP if zone == "dialog" else y
            high = 4 * STEP if zone == "hero" else STEP
            found.append((MARGIN, y, WIDTH - MARGIN, y + high - 8))
            y += high
        elif zone == "status":
            found.append(_STATUS[status])
            status += 1
        elif zone == "heading":
            found.append(_HEADING)
        elif zone == "toast":
            found.append(_HIGH_TOAST if key else _LOW_TOAST)
        elif zone == "key":
            found.append(_KEY_BOXES[key])
            key += 1
        else:
            columns, across, down, left, wide, high = _GRID[zone]
            x = MARGIN + column * across + left
            found.append((x, y, x + wide, y + high))
            column += 1
            if column == columns:
                y, column = y + down, 0
        last = zone
    return tuple(found)


_CLASSES = {
    "button": "Button",
    "item": "LinearLayout",
    "icon": "ImageView",
    "image": "ImageView",
    "field": "EditText",
    "switch": "Switch",
    "checkbox": "CheckBox",
    "radio": "RadioButton",
}
"""Role -> class of Android; others are text views, and links are plain views."""
_DEPTHS = {"status": 4, "heading": 5, "icon": 6, "tile": 8, "hero": 7, "key": 6, "row": 8}
_DEPTHS |= {"toast": 3, "dialog": 8}
"""Typical depth of such a widget in the view tree of Android."""


def full_device_element(index: int, widget: Widget, bounds: Box, focus: str) -> Element:
    """An element of the full device, with the fields that AndroidWorld gives."""
    field, role = widget.field, widget.role
    android_class = f"android.widget.{_CLASSES.get(role, 'TextView')}"
    return Element(
        index=index,
        role=role,
        text=widget.text,
        description=widget.description,
        hint=widget.text if field is not None and not widget.value else "",
        value=widget.value,
        checked=widget.checked,
        clickable=widget.effect is not None or field is not None,
        editable=field is not None,
        focused=field is not None and field == focus,
        scrollable=widget.scrollable,
        bounds=bounds,
        class_name="android.view.View" if role == "link" else android_class,
        depth=_DEPTHS[widget.zone],
    )


def key_at(x: int, y: int) -> str:
    """The character of the key at these pixels, or an empty string."""
    row, column = (y - KEY_TOP) // KEY_ROW, x // KEY_WIDTH
    if 0 <= row < len(LETTERS) and 0 <= column < len(LETTERS[row]):
        return LETTERS[row][column]
    return ""
