"""Mouse and keyboard events; a page cannot tell them from the events of a person."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from swarm_ui.action import Action
from swarm_ui.environments.miniwob.cdp import Reply
from swarm_ui.observation import Observation

DRAG_MOVES = 12
"""Number of mouse moves in a drag."""

Point = tuple[float, float]


class Key(NamedTuple):
    """A key in the terms of DevTools."""

    name: str
    code: int
    text: str = ""


KEYS: Mapping[str, Key] = {
    "KEYCODE_ENTER": Key("Enter", 13, "\r"),
    "KEYCODE_TAB": Key("Tab", 9),
    "KEYCODE_SPACE": Key(" ", 32, " "),
    "KEYCODE_DEL": Key("Backspace", 8),
    "KEYCODE_FORWARD_DEL": Key("Delete", 46),
    "KEYCODE_ESCAPE": Key("Escape", 27),
    "KEYCODE_DPAD_UP": Key("ArrowUp", 38),
    "KEYCODE_DPAD_DOWN": Key("ArrowDown", 40),
    "KEYCODE_DPAD_LEFT": Key("ArrowLeft", 37),
    "KEYCODE_DPAD_RIGHT": Key("ArrowRight", 39),
    "KEYCODE_MOVE_HOME": Key("Home", 36),
    "KEYCODE_MOVE_END": Key("End", 35),
    "KEYCODE_PAGE_UP": Key("PageUp", 33),
    "KEYCODE_PAGE_DOWN": Key("PageDown", 34),
}
"""Android's key codes (``Action.keycode``) that a page understands."""


def problem(action: Action, now: Observation) -> str:
    """Why an action cannot be done on any page with this list, or an empty string."""
    for index in (action.index, action.to_index):
        if index is not None and now.element(index) is None:
            return f"no element {index}; the screen has {len(now.elements)}"
    if action.keycode is not None and action.keycode not in KEYS:
        return f"no key {action.keycode!r}; there are {', '.join(KEYS)}"
    return ""


class Target(Protocol):
    """The page that receives the events."""

    async def call(self, method: str, **params: object) -> Reply: ...

    async def drawn(self, waiting: Coroutine[Any, Any, Reply]) -> None:
        """Wait for a call that the browser answers only when it draws a frame: a mouse move."""
        ...


async def perform(page: Target, action: Action, at: Point, to: Point | None) -> None:
    """Do an action at a point of the screen; ``to`` is the end of a drag."""
    kind = action.action_type
    if kind == "keyboard_enter":
        await _press(page, KEYS[action.keycode or "KEYCODE_ENTER"])
    elif kind == "long_press":
        await _move(page, at)
    elif kind == "swipe" and to is not None:
        await _drag(page, at, to)
    elif kind == "input_text":
        await _click(page, at, 1)
        await _write(page, action.text or "", replace=action.clear_text is not False)
    else:
        await _click(page, at, 2 if kind == "double_tap" else 1)


async def move_away(page: Target) -> None:
    """Move the mouse off the page."""
    await _move(page, (-1, -1))


async def _move(page: Target, at: Point, *, held: bool = False) -> None:
    moved = page.call(
        "Input.dispatchMouseEvent",
        type="mouseMoved",
        x=at[0],
        y=at[1],
        button="left" if held else "none",
        buttons=int(held),
    )
    await page.drawn(moved)


def _button(page: Target, kind: str, at: Point, clicks: int = 1) -> Awaitable[Reply]:
    return page.call(
        "Input.dispatchMouseEvent",
        type=kind,
        x=at[0],
        y=at[1],
        button="left",
        buttons=int(kind == "mousePressed"),
        clickCount=clicks,
    )


async def _click(page: Target, at: Point, times: int) -> None:
    await _move(page, at)
    await _in_order(
        _button(page, kind, at, clicks)
        for clicks in range(1, times + 1)
        for kind in ("mousePressed", "mouseReleased")
    )


async def _drag(page: Target, start: Point, end: Point) -> None:
    await _move(page, start)
    await _button(page, "mousePressed", start)
    for step in range(1, DRAG_MOVES + 1):
        share = step / DRAG_MOVES
        x = start[0] + share * (end[0] - start[0])
        y = start[1] + share * (end[1] - start[1])
        await _move(page, (x, y), held=True)
    await _move(page, end, held=True)  # a sortable list reacts one event late
    await _button(page, "mouseReleased", end)


async def _write(page: Target, text: str, *, replace: bool) -> None:
    command = "selectAll" if replace else "moveToEndOfDocument"
    await page.call("Input.dispatchKeyEvent", type="rawKeyDown", key="", commands=[command])
    await page.call("Input.dispatchKeyEvent", type="keyUp", key="")
    if not text and replace:
        await _press(page, KEYS["KEYCODE_DEL"])
    await _in_order(event for letter in text for event in _stroke(page, _key_of(letter)))


async def _press(page: Target, key: Key) -> None:
    await _in_order(_stroke(page, key))


def _stroke(page: Target, key: Key) -> list[Awaitable[Reply]]:
    """The two events of one key, as calls that are not started yet."""
    down = "keyDown" if key.text else "rawKeyDown"
    told: dict[str, object] = {"key": key.name, "windowsVirtualKeyCode": key.code}
    return [
        page.call("Input.dispatchKeyEvent", type=down, text=key.text, **told),
        page.call("Input.dispatchKeyEvent", type="keyUp", **told),
    ]


def _key_of(letter: str) -> Key:
    if letter in "\r\n":
        return KEYS["KEYCODE_ENTER"]
    if letter == "\t":
        return KEYS["KEYCODE_TAB"]
    code = ord(letter.upper()) if letter.isascii() and letter.isalnum() else 0
    return Key(letter, code, letter)


async def _in_order(calls: Iterable[Awaitable[object]]) -> None:
    """Send calls without waiting in between; the browser keeps their order."""
    await asyncio.gather(*calls)
