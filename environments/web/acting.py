"""Actions on a page, performed with the mouse and the keyboard as a person would."""

from __future__ import annotations

import asyncio
from pathlib import Path

from swarm_ui.action import Action
from swarm_ui.environments.web.browser import Rejected
from swarm_ui.environments.web.input import Point
from swarm_ui.environments.web.reading import Seen
from swarm_ui.environments.web.tab import Tab

WAIT = 0.5
"""Seconds that ``wait`` waits."""
AHEAD = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}

# Fields whose parts cannot be typed as text; sets the value as the field's own control would.
_SET_VALUE = """function (text) {
  const plain = ["date", "datetime-local", "time", "month", "week", "color", "range"];
  if (!(this instanceof HTMLInputElement) || !plain.includes(this.type)) return false;
  const own = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
  own.set.call(this, text);
  for (const type of ["input", "change"]) this.dispatchEvent(new Event(type, { bubbles: true }));
  return true;
}"""
_TAKES_FILE = """function () {
  return this instanceof HTMLInputElement && this.type === "file";
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
# A part of a picture (an image map) has no place of its own.
_PRESS_AREA = """function () {
  if (!(this instanceof HTMLAreaElement)) return false;
  this.click();
  return true;
}"""
_BRING = """function () {
  const node = this.nodeType === 1 ? this : this.parentElement;
  node.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
}"""
_SHARE = 0.8
"""Share of the window that one scroll moves."""


async def act(tab: Tab, action: Action, seen: Seen, uploads: Path | None) -> str:
    """Do an action on the page of the active tab; return why it failed, or ``""``.

    Args:
        tab: the tab.
        action: the action; its indices are positions in ``seen.nodes``.
        seen: the page as last read.
        uploads: the folder of the files that may be uploaded.
    """
    kind = action.action_type
    node = None if action.index is None else seen.nodes[action.index]
    element = None if action.index is None else seen.elements[action.index]
    try:
        if kind == "wait":
            await asyncio.sleep(WAIT)
            return ""
        if kind == "scroll" or (kind == "swipe" and node is None and action.x is None):
            return await _scroll(tab, action, node)
        if kind == "keyboard_enter":
            await tab.perform(action)
            return ""
        if element is not None and not element.enabled:
            return "the element is disabled"
        option = element is not None and element.role == "option"
        if kind == "select" or (option and kind in ("click", "double_tap")):
            problem = _NO_SELECT if node is None else await _choose(tab, node, action)
            if kind == "select" or problem != _NO_SELECT:
                return problem  # else the page made the option itself: press it
        if kind == "input_text" and element is not None and not element.editable:
            return "no text can be typed there"
        typed = (action.text or "") if kind == "input_text" else None
        if node is not None and typed is not None:
            if await tab.on_node(node, _TAKES_FILE):
                return await _upload(tab, node, typed, uploads)
            if await tab.on_node(node, _SET_VALUE, typed):
                return ""
        return await _with_mouse(tab, action, seen)
    except Rejected:
        return "the element is no longer on the page"


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


async def _with_mouse(tab: Tab, action: Action, seen: Seen) -> str:
    to: Point | None = None
    if action.action_type == "swipe" and action.direction is None:
        ends = await _drag(tab, action, seen)
        if ends is None:
            return "nothing was dragged: its two ends do not fit into the window together"
        at, to = ends
    else:
        try:
            at = await _spot(tab, action.index, action.x, action.y, seen)
        except Rejected:
            node = None if action.index is None else seen.nodes[action.index]
            if action.action_type == "click" and node and await tab.on_node(node, _PRESS_AREA):
                return ""
            raise
        if action.direction is not None and action.action_type == "swipe":
            dx, dy = AHEAD[action.direction]
            to = at[0] + 100 * dx, at[1] + 100 * dy
    await tab.perform(action, at, to)
    return ""


async def _drag(tab: Tab, action: Action, seen: Seen) -> tuple[Point, Point] | None:
    """Start and end of a drag; ``None`` if one of them is outside of the window.

    The places are read after all scrolling, because bringing one element into view moves the other.
    Nothing is scrolled if an end is given in pixels, which count from the present window.
    """
    if action.index is not None and action.to_index is not None:
        for index in (action.index, action.to_index):
            await tab.on_node(seen.nodes[index], _BRING)
    start = await _place(tab, action.index, action.x, action.y, seen)
    end = await _place(tab, action.to_index, action.to_x, action.to_y, seen)
    window = (await tab.call("Page.getLayoutMetrics"))["cssLayoutViewport"]
    width, height = window["clientWidth"], window["clientHeight"]
    inside = all(0 <= x < width and 0 <= y < height for x, y in (start, end))
    return (start, end) if inside else None


async def _spot(tab: Tab, index: int | None, x: int | None, y: int | None, seen: Seen) -> Point:
    """The point in the window at which an action acts; an element is scrolled into the window
    first. Raises ``Rejected`` if the element has no place."""
    if index is not None:
        await tab.call("DOM.scrollIntoViewIfNeeded", backendNodeId=seen.nodes[index])
    return await _place(tab, index, x, y, seen)


async def _place(tab: Tab, index: int | None, x: int | None, y: int | None, seen: Seen) -> Point:
    """The present centre of an element, or the given point if no element is given. Raises
    ``Rejected`` if the element has no place."""
    if index is None:
        return float(x or 0), float(y or 0)
    node = seen.nodes[index]
    quads = (await tab.call("DOM.getContentQuads", backendNodeId=node))["quads"]
    if not quads:
        raise Rejected("the element has no place on the page")
    return sum(quads[0][::2]) / 4, sum(quads[0][1::2]) / 4


async def _choose(tab: Tab, node: int, action: Action) -> str:
    """Choose an option of a ``select``; return why it failed, or ``""``."""
    text = (action.text or "") if action.action_type == "select" else ""
    problem: str = await tab.on_node(node, _CHOOSE, text, action.action_type == "click")
    return problem


async def _scroll(tab: Tab, action: Action, node: int | None) -> str:
    assert action.direction is not None  # Action validates it
    dx, dy = AHEAD[action.direction]
    if action.action_type == "swipe":  # a finger moves the page in the opposite direction
        dx, dy = -dx, -dy
    if node is None:
        root = await tab.call("DOM.getDocument", depth=0)
        node = int(root["root"]["backendNodeId"])
    moved = await tab.on_node(node, _SCROLL, _SHARE * dx, _SHARE * dy)
    return "" if moved else "nothing to scroll that way"
