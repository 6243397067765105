"""Converts upstream AndroidWorld's UI elements to those of :mod:`swarm_ui.observation`."""

from __future__ import annotations

import io
from typing import Any

from swarm_ui.observation import Element, Role

_ROLES: tuple[tuple[str, Role], ...] = (  # first match in the class name wins
    ("EditText", "field"),
    ("AutoComplete", "field"),
    ("Switch", "switch"),
    ("ToggleButton", "switch"),
    ("CheckBox", "checkbox"),
    ("RadioButton", "radio"),
    ("ImageButton", "icon"),
    ("Button", "button"),
    ("ImageView", "image"),
    ("Tab", "tab"),
    ("TextView", "text"),
)


def on_screen(element: Any, size: tuple[int, int]) -> bool:
    """Whether an element is not hidden and its box overlaps the screen."""
    box = element.bbox_pixels
    if element.is_visible is False or box is None:
        return False
    wide, high = box.x_min < box.x_max, box.y_min < box.y_max
    inside = box.x_max > 0 and box.y_max > 0 and box.x_min < size[0] and box.y_min < size[1]
    return bool(wide and high and inside)


def to_element(index: int, element: Any) -> Element:
    """Upstream's ``UIElement`` as the ``index``-th element of an observation."""
    editable = bool(element.is_editable) or "EditText" in (element.class_name or "")
    text = element.text or ""
    if editable and text == (element.hint_text or ""):
        text = ""  # Android reports the hint as the text of an empty field
    box = element.bbox_pixels
    return Element(
        index=index,
        role=_role(element, editable),
        text="" if editable else text,
        description=element.content_description or "",
        hint=element.hint_text or "",
        value=text if editable else None,
        checked=bool(element.is_checked) if element.is_checkable else None,
        selected=True if element.is_selected else None,
        clickable=bool(element.is_clickable),
        editable=editable,
        enabled=element.is_enabled is not False,
        focused=bool(element.is_focused),
        scrollable=bool(element.is_scrollable),
        bounds=(int(box.x_min), int(box.y_min), int(box.x_max), int(box.y_max)),
    )


def _role(element: Any, editable: bool) -> Role:
    if editable:
        return "field"
    name = (element.class_name or "").rpartition(".")[2]
    for part, role in _ROLES:
        if part in name:
            return role
    return "item" if element.is_clickable else "text"


def to_png(pixels: Any) -> bytes:
    """Upstream's RGB array ``[height, width, 3]`` as a PNG."""
    from PIL import Image

    height, width = pixels.shape[:2]
    buffer = io.BytesIO()
    Image.frombytes("RGB", (width, height), pixels.tobytes()).save(buffer, "PNG")
    return buffer.getvalue()
