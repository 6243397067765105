"""Actions on a page, performed with the mouse and the keyboard. A page cannot tell their events
from those of a person."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from swarm_ui.action import Action
from swarm_ui.environments.web.browser import Rejected, Tab
from swarm_ui.environments.web.reading import FILE, Seen
from swarm_ui.observation import Element

WAIT = 0.5
"""Seconds that ``wait`` waits."""
DRAG_MOVES = 12
"""Number of mouse moves in a drag."""
MOST_STROKES = 200
"""Characters that are typed key by key; a longer text is pasted."""
AHEAD = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
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

Point = tuple[float, float]

# Fields whose parts cannot be typed as text; sets the value as the field's own control would.
_SET_VALUE = """function (text) {
  const plain = ["date", "datetime-local", "time", "month", "week", "color", "range"];
  if (!(this instanceof HTMLInputElement) || !plain.includes(this.type)) return false;
  const own = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  own.set.call(this, text);
  for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, { bubbles: true }));
  return true;
}"""
_CHOOSE = """function (text, toggle) {
  const select = this.closest("select");
  if (!select) return "not an option";
  const same = (option) => option.text.trim().toLowerCase() === text.trim().toLowerCase();
  const option = text ? [...select.options].find(same) : this;
  if (!option || option.matches(":disabled")) return "no such option";
  if (select.multiple) option.selected = !(toggle && option.selected);
  else select.value = option.value, option.selected = true;
  for (const type of ["input", "change"]) select.dispatchEvent(new Event(type, { bubbles: true }));
  return "";
}"""
_NO_SELECT = "not an option"
_SCROLL = """function (dx, dy) {
  const root = document.scrollingElement || document.documentElement;
  const room = (n) => n === root || /auto|scroll/.test(getComputedStyle(n).overflowY
    + getComputedStyle(n).overflowX);
  const move = (n) => {
    const before = [n.scrollLeft, n.scrollTop];
    n.scrollBy({ left: dx * n.clientWidth, top: dy * n.clientHeight, behavior: "instant" });
    return n.scrollLeft !== before[0] || n.scrollTop !== before[1];
  };
  for (let n = this.nodeType === 1 ? this : root; n; n = n.parentElement || n.getRootNode().host) {
    if (room(n) && move(n)) return true;
  }
  if (this.nodeType === 1) return false;
  const large = [...document.querySelectorAll("body *")].filter(room)
    .sort((a, b) => b.clientWidth * b.clientHeight - a.clientWidth * a.clientHeight);
  return large.some(move);
}"""
_BRING = """function () {
  const node = this.nodeType === 1 ? this : this.parentElement;
  node.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
}"""
_SHARE = 0.8
"""Share of the window that one scroll moves."""


def unknown_key(action: Action) -> str:
    """Why the key of an action cannot be pressed; empty: it has none, or it can be pressed."""
    if action.keycode is None or action.keycode in KEYS:
        return ""
    return f"no key {action.keycode!r}; there are {', '.join(KEYS)}"


async def perform(page: Tab, action: Action, at: Point = (0, 0), to: Point = (0, 0)) -> None:
    """Do an action at a point of the window; ``to`` is the end of a drag."""
    kind, mouse, keyboard = action.action_type, page.page.mouse, page.page.keyboard
    if kind == "keyboard_enter":
        await keyboard.press(KEYS[action.keycode or "KEYCODE_ENTER"])
    elif kind == "long_press":
        await mouse.move(*at)
    elif kind == "swipe":
        await mouse.move(*at)
        await mouse.down()
        await mouse.move(*to, steps=DRAG_MOVES)
        await mouse.move(*to)  # a sortable list reacts one event late
        await mouse.up()
    else:
        await mouse.click(*at, click_count=2 if kind == "double_tap" else 1)
    if kind != "input_text":
        return
    replace, text = action.clear_text is not False, action.text or ""
    # Commands of the editor; their keys differ between systems.
    commands = ["selectAll" if replace else "moveToEndOfDocument"]
    await page.call("Input.dispatchKeyEvent", type="rawKeyDown", commands=commands)
    await page.call("Input.dispatchKeyEvent", type="keyUp")
    if len(text) > MOST_STROKES:
        await keyboard.insert_text(text)
    elif text:
        await keyboard.type(text)
    elif replace:
        await keyboard.press("Backspace")


async def act(tab: Tab, action: Action, seen: Seen, uploads: Path | None = None) -> str:
    """Do an action on the page of a tab; return why it failed, or ``""``. The action's indices are
    positions in ``seen``, the page as last read. ``uploads``: the folder of the files that may be
    uploaded."""
    kind, index = action.action_type, action.index
    element = None if index is None else seen.elements[index]
    node = None if index is None else seen.nodes[index]
    try:
        if kind == "wait":
            await asyncio.sleep(WAIT)
        elif kind == "keyboard_enter":
            await tab.done(perform(tab, action))
        elif kind == "scroll" or (kind == "swipe" and node is None and action.x is None):
            return await _scroll(tab, action, node)
        elif kind == "swipe" and action.direction is None:
            return await _drag(tab, action, seen)
        else:
            if element is not None and node is not None:
                done = await _instead(tab, action, element, node, uploads)
                if done is not None:
                    return done
                await tab.call("DOM.scrollIntoViewIfNeeded", backendNodeId=node)
            at = await _place(tab, node, action.x, action.y)
            dx, dy = AHEAD[action.direction or "up"]
            end = at[0] + 100 * dx, at[1] + 100 * dy
            await tab.done(perform(tab, action, at, end))
    except Rejected:
        return "the element is no longer on the page"
    return ""


async def _instead(
    tab: Tab, action: Action, element: Element, node: int, uploads: Path | None
) -> str | None:
    """Do what is done without the mouse on an element, and return why it failed, or ``""``;
    ``None``: use the mouse."""
    kind, text = action.action_type, action.text or ""
    if not element.enabled:
        return "the element is disabled"
    if kind == "select":
        return str(await tab.on_node(node, _CHOOSE, text, False))
    if element.role == "option" and kind in ("click", "double_tap"):
        problem: str = await tab.on_node(node, _CHOOSE, "", kind == "click")
        return None if problem == _NO_SELECT else problem  # the page made the option: press it
    if kind != "input_text":
        return None
    if not element.editable:
        return "no text can be typed there"
    if element.hint == FILE:
        return await _upload(tab, node, text, uploads)
    return "" if await tab.on_node(node, _SET_VALUE, text) else None


async def _upload(tab: Tab, node: int, name: str, uploads: Path | None) -> str:
    """Choose a file in a file input; return why it failed, or ``""``."""
    if uploads is None:
        return "no file may be uploaded here"
    folder = uploads.resolve()
    try:
        file = (folder / name).resolve()
        allowed = file.is_relative_to(folder) and file.is_file()
    except (OSError, ValueError):  # such as a name with a null character
        allowed = False
    if not allowed:
        files = sorted(one.name for one in folder.iterdir() if one.is_file())
        return f"no file {name[:200]!r} may be uploaded; there are {', '.join(files[:20])}"
    await tab.call("DOM.setFileInputFiles", files=[str(file)], backendNodeId=node)
    return ""


async def _drag(tab: Tab, action: Action, seen: Seen) -> str:
    """Drag from a place to another; return why it failed, or ``""``.

    The places are read after all scrolling, because bringing one element into view moves the other.
    Nothing is scrolled if an end is given in pixels, which count from the present window.
    """
    nodes = [None if k is None else seen.nodes[k] for k in (action.index, action.to_index)]
    for node in nodes if None not in nodes else ():
        await tab.on_node(node or 0, _BRING)
    start = await _place(tab, nodes[0], action.x, action.y)
    end = await _place(tab, nodes[1], action.to_x, action.to_y)
    window = (await tab.call("Page.getLayoutMetrics"))["cssLayoutViewport"]
    width, height = window["clientWidth"], window["clientHeight"]
    if not all(0 <= x < width and 0 <= y < height for x, y in (start, end)):
        return "nothing was dragged: its two ends do not fit into the window together"
    await tab.done(perform(tab, action, start, end))
    return ""


async def _place(tab: Tab, node: int | None, x: int | None, y: int | None) -> Point:
    """The present centre of an element, or the given point if no element is given. Raises
    ``Rejected`` if the element has no place."""
    if node is None:
        return float(x or 0), float(y or 0)
    quads = (await tab.call("DOM.getContentQuads", backendNodeId=node))["quads"]
    if not quads:
        raise Rejected("the element has no place on the page")
    return sum(quads[0][::2]) / 4, sum(quads[0][1::2]) / 4


async def _scroll(tab: Tab, action: Action, node: int | None) -> str:
    dx, dy = AHEAD[action.direction or "down"]
    if action.action_type == "swipe":  # a finger moves the page in the opposite direction
        dx, dy = -dx, -dy
    if node is None:
        node = int((await tab.call("DOM.getDocument", depth=0))["root"]["backendNodeId"])
    moved = await tab.on_node(node, _SCROLL, _SHARE * dx, _SHARE * dy)
    return "" if moved else "nothing to scroll that way"
