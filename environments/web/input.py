"""Mouse and keyboard; a page cannot tell their events from those of a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from swarm_ui.action import Action
from swarm_ui.observation import Observation

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

DRAG_MOVES = 12
"""Number of mouse moves in a drag."""
MOST_STROKES = 200
"""Characters that are typed key by key; a longer text is pasted."""

Point = tuple[float, float]

KEYS: Mapping[str, str] = {
    "KEYCODE_ENTER": "Enter",
    "KEYCODE_TAB": "Tab",
    "KEYCODE_SPACE": "Space",
    "KEYCODE_DEL": "Backspace",
    "KEYCODE_FORWARD_DEL": "Delete",
    "KEYCODE_ESCAPE": "Escape",
    "KEYCODE_DPAD_UP": "ArrowUp",
    "KEYCODE_DPAD_DOWN": "ArrowDown",
    "KEYCODE_DPAD_LEFT": "ArrowLeft",
    "KEYCODE_DPAD_RIGHT": "ArrowRight",
    "KEYCODE_MOVE_HOME": "Home",
    "KEYCODE_MOVE_END": "End",
    "KEYCODE_PAGE_UP": "PageUp",
    "KEYCODE_PAGE_DOWN": "PageDown",
}
"""Android's key codes (``Action.keycode``) that a page understands, and their names in browsers."""


def problem(action: Action, now: Observation) -> str:
    """Why an action cannot be done on any page with this list, or an empty string."""
    for index in (action.index, action.to_index):
        if index is not None and now.element(index) is None:
            return f"no element {index}; the screen has {len(now.elements)}"
    if action.keycode is not None and action.keycode not in KEYS:
        return f"no key {action.keycode!r}; there are {', '.join(KEYS)}"
    return ""


async def perform(
    page: Page, devtools: CDPSession, action: Action, at: Point, to: Point | None
) -> None:
    """Do an action at a point of the screen; ``to`` is the end of a drag."""
    kind, mouse = action.action_type, page.mouse
    if kind == "keyboard_enter":
        await page.keyboard.press(KEYS[action.keycode or "KEYCODE_ENTER"])
    elif kind == "long_press":
        await mouse.move(*at)
    elif kind == "swipe" and to is not None:
        await mouse.move(*at)
        await mouse.down()
        await mouse.move(*to, steps=DRAG_MOVES)
        await mouse.move(*to)  # a sortable list reacts one event late
        await mouse.up()
    elif kind == "input_text":
        await mouse.click(*at)
        await _write(page, devtools, action.text or "", replace=action.clear_text is not False)
    else:
        await mouse.click(*at, click_count=2 if kind == "double_tap" else 1)


async def _write(page: Page, devtools: CDPSession, text: str, *, replace: bool) -> None:
    # Commands of the editor; their keys differ between systems.
    command = {
        "type": "rawKeyDown",
        "commands": ["selectAll" if replace else "moveToEndOfDocument"],
    }
    await devtools.send("Input.dispatchKeyEvent", command)
    await devtools.send("Input.dispatchKeyEvent", {"type": "keyUp"})
    if len(text) > MOST_STROKES:
        await page.keyboard.insert_text(text)
    elif text:
        await page.keyboard.type(text)
    elif replace:
        await page.keyboard.press("Backspace")
