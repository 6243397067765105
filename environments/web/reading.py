"""Reads the elements that a tab shows from the browser's accessibility tree and layout.

Both come from the browser, not from a script in the page, so a page cannot hide or forge them.
Frames and shadow roots, open or closed, are part of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, NamedTuple

from swarm_ui.environments.miniwob.cdp import Rejected, Reply
from swarm_ui.environments.web.tab import Tab
from swarm_ui.observation import Element, Role

_STYLES = ("cursor", "border-left-width", "padding-left", "border-top-width", "padding-top")
MOST_ELEMENTS = 200
MOST_TEXT = 500
"""Maximum number of characters of a label or a value."""
MOST_CARD = 200
"""Maximum number of characters of a clickable node without a role that becomes one element."""

_ROLES: dict[str, Role] = {
    "button": "button", "PopUpButton": "button", "ToggleButton": "button", "DisclosureTriangle":
    "button", "link": "link", "textbox": "field", "searchbox": "field", "spinbutton": "field",
    "combobox": "field", "TextFieldWithComboBox": "field", "slider": "field", "Date": "field",
    "DateTime": "field", "InputTime": "field", "ColorWell": "field", "checkbox": "checkbox",
    "radio": "radio", "switch": "switch", "option": "option", "menuitem": "item",
    "menuitemcheckbox": "checkbox", "menuitemradio": "radio", "treeitem": "item", "tab": "tab",
    "heading": "heading", "image": "image", "img": "image", "Canvas": "image", "cell": "cell",
    "gridcell": "cell", "columnheader": "cell", "rowheader": "cell", "dialog": "dialog",
    "alertdialog": "dialog", "progressbar": "text", "meter": "text", "Video": "image",
}  # fmt: skip
"""Roles of the accessibility tree that are listed."""
_WHOLE = frozenset({"button", "link", "option", "heading", "tab", "item", "checkbox", "radio",
                    "switch", "image"})  # fmt: skip
"""Roles of elements whose name contains the text inside them."""
_ACTABLE = frozenset({"button", "link", "field", "checkbox", "radio", "switch", "option", "item",
                      "tab"})  # fmt: skip

Bounds = tuple[int, int, int, int]
Tree = Mapping[str, Reply]


class Seen(NamedTuple):
    """The elements of a page, and the browser's number of each one's node."""

    elements: tuple[Element, ...]
    nodes: tuple[int, ...]
    title: str
    above: int
    """Number of elements that are above the visible part and not listed."""
    below: int


class _Layout(NamedTuple):
    """Places of nodes in the window, in pixels."""

    bounds: Mapping[int, Bounds]
    frames: Mapping[int, str]
    """The frame in each frame element."""
    listening: frozenset[int]
    """Nodes that listen to clicks."""
    pointing: frozenset[int]
    """Nodes over which the mouse becomes a hand."""


async def read(tab: Tab, size: tuple[int, int]) -> Seen:
    """The elements in the window and half a window around it, in reading order.

    Raises:
        Rejected: the page changed while it was read.
    """
    snapshot = await tab.call("DOMSnapshot.captureSnapshot", computedStyles=_STYLES)
    layout = _layout(snapshot)
    frames = {tab.target, *layout.frames.values()}
    trees = dict(zip(frames, await asyncio.gather(*(_tree(tab, f) for f in frames)), strict=True))
    found = list(_elements(tab.target, trees, layout))
    near = [(e, n) for e, n in found if _side(e.bounds, size[1]) == 0][:MOST_ELEMENTS]
    rest = [_side(e.bounds, size[1]) for e, _ in found]
    below = rest.count(1) + max(0, rest.count(0) - MOST_ELEMENTS)
    elements, nodes = tuple(e for e, _ in near), tuple(n for _, n in near)
    title = next((_name(n) for n in trees[tab.target].values() if "parentId" not in n), "")
    return Seen(elements, nodes, title, rest.count(-1), below)


def _side(bounds: Bounds | None, height: int) -> int:
    """-1: far above the window, 1: far below it, 0: in it or near."""
    if bounds is None:
        return 0
    return -1 if bounds[3] < -height / 2 else 1 if bounds[1] > 1.5 * height else 0


async def _tree(tab: Tab, frame: str) -> Tree:
    try:
        nodes = (await tab.call("Accessibility.getFullAXTree", frameId=frame))["nodes"]
    except Rejected:
        if frame == tab.target:
            raise
        return {}  # a frame that was removed meanwhile
    return {node["nodeId"]: node for node in nodes}


def _layout(snapshot: Reply) -> _Layout:
    documents, words = snapshot["documents"], snapshot["strings"]
    bounds: dict[int, Bounds] = {}
    frames: dict[int, str] = {}
    listening: set[int] = set()
    pointing: set[int] = set()
    # A document's places count from its own corner; a frame's corner is known after its parent's.
    corners: dict[int, tuple[float, float]] = {0: (0.0, 0.0)}
    waiting = [0]
    while waiting:
        index = waiting.pop()
        document = documents[index]
        nodes, layout = document["nodes"], document["layout"]
        ids = nodes["backendNodeId"]
        x = corners[index][0] - document.get("scrollOffsetX", 0)
        y = corners[index][1] - document.get("scrollOffsetY", 0)
        inner = nodes.get("contentDocumentIndex", {"index": (), "value": ()})
        pages = dict(zip(inner["index"], inner["value"], strict=True))
        for place, box, styles in zip(
            layout["nodeIndex"], layout["bounds"], layout["styles"], strict=True
        ):
            left, top = round(x + box[0]), round(y + box[1])
            bounds[ids[place]] = left, top, left + round(box[2]), top + round(box[3])
            if styles and styles[0] >= 0 and words[styles[0]] == "pointer":
                pointing.add(ids[place])
            if place in pages:  # the page of a frame is inside of its border and padding
                edges = [_pixels(words[style]) for style in styles[1:]]
                corners[pages[place]] = x + box[0] + sum(edges[:2]), y + box[1] + sum(edges[2:])
        listening.update(ids[place] for place in nodes.get("isClickable", {}).get("index", ()))
        for place, child in pages.items():
            frames[ids[place]] = words[documents[child]["frameId"]]
            corners.setdefault(child, (x, y))  # a frame that is not shown
            waiting.append(child)
    return _Layout(bounds, frames, frozenset(listening), frozenset(pointing))


def _pixels(length: str) -> float:
    """A computed length such as ``7px``; 0 for any other."""
    return float(length.removesuffix("px")) if length.endswith("px") else 0.0


class _Document:
    """The accessibility tree of a frame in reading order, without recursion: pages nest deeply."""

    def __init__(self, tree: Tree, layout: _Layout) -> None:
        self.nodes: list[Reply] = []
        self.ends: list[int] = []
        """For each node, the index after its last descendant."""
        stack: list[tuple[Reply | None, int]] = [
            (node, 0) for node in tree.values() if "parentId" not in node
        ]
        while stack:
            node, place = stack.pop()
            if node is None:
                self.ends[place] = len(self.nodes)
                continue
            place = len(self.nodes)
            self.nodes.append(node)
            self.ends.append(place)
            stack.append((None, place))
            inside = [tree[child] for child in node.get("childIds", ()) if child in tree]
            stack.extend((child, 0) for child in reversed(inside))
        self._controls = _counts(_actable(node) for node in self.nodes)
        self._listening = _counts(_number(node) in layout.listening for node in self.nodes)

    def has_control(self, place: int) -> bool:
        """Whether there is a control inside a node."""
        return self._controls[self.ends[place]] > self._controls[place + 1]

    def listens_inside(self, place: int) -> bool:
        return self._listening[self.ends[place]] > self._listening[place + 1]

    def text(self, place: int) -> str:
        inside = self.nodes[place + 1 : self.ends[place]]
        words = (_name(node) for node in inside if _role(node) == "StaticText")
        return " ".join(filter(None, words))


def _elements(
    frame: str, trees: Mapping[str, Tree], layout: _Layout
) -> Iterator[tuple[Element, int]]:
    """The elements of a frame and of the frames in it."""
    document = _Document(trees.get(frame, {}), layout)
    names = {_name(node) for node in document.nodes if _actable(node)}
    place, label_end, owners = 0, 0, [("", len(document.nodes))]
    while place < len(document.nodes):
        node, end = document.nodes[place], document.ends[place]
        while place >= owners[-1][1]:
            owners.pop()
        place += 1
        number, raw, name = _number(node), _role(node), _name(node)
        role = None if node.get("ignored") else _ROLES.get(raw)
        if number in layout.frames:
            yield from _elements(layout.frames[number], trees, layout)
            place = end
        elif raw == "InlineTextBox":
            place = end
        elif raw == "LabelText":
            label_end = end
        elif raw == "StaticText":
            # The text of a label is listed with its control.
            if name and not (place <= label_end and name in names):
                yield _element("text", node, layout, text=name, clickable=False)
        elif raw == "combobox" and _is_closed(document, place - 1):
            yield _control("button", node, owners[-1][0], layout)
            place = end
        elif raw in ("combobox", "listbox") and not _property(node, "editable"):
            owners.append((name or owners[-1][0], end))  # its options are listed by name
        elif role is not None:
            yield _control(role, node, owners[-1][0], layout)
            if role == "field" or (role in _WHOLE and not document.has_control(place - 1)):
                place = end
        elif _property(node, "editable") and _property(node, "focusable"):
            yield _control("field", node, owners[-1][0], layout)  # the text of an editor
            if not document.has_control(place - 1):
                place = end
        elif _is_card(document, place - 1, layout):
            yield _element("item", node, layout, text=(name or document.text(place - 1)))
            place = end


def _is_closed(document: _Document, place: int) -> bool:
    """Whether a combobox that is not typed into has its options elsewhere, and opens them when it
    is pressed. The options of a ``select`` are always inside it."""
    return not _property(document.nodes[place], "editable") and not document.has_control(place)


def _is_card(document: _Document, place: int, layout: _Layout) -> bool:
    """Whether a node without a role is pressed as a whole, such as a card or a tile."""
    node = document.nodes[place]
    pressed = _number(node) in layout.listening or _number(node) in layout.pointing
    if not pressed or document.has_control(place) or document.listens_inside(place):
        return False
    return len(document.text(place)) <= MOST_CARD and _role(node) != "RootWebArea"


def _control(role: Role, node: Reply, owner: str, layout: _Layout) -> tuple[Element, int]:
    state = _property(node, "selected" if role == "option" else "checked")
    value = node.get("value", {}).get("value")
    fields: dict[str, Any] = {
        "text": _name(node),
        "description": owner if role == "option" else _text(node, "description"),
        "enabled": _property(node, "disabled") is not True,
        "focused": _property(node, "focused") is True,
        "checked": None if state is None else state in (True, "true"),
        "clickable": role in _ACTABLE,
    }
    if role == "field":
        rich = _property(node, "editable") == "richtext"
        role = "area" if rich or _property(node, "multiline") is True else role
        fields["value"] = "" if value is None else str(value)[:MOST_TEXT]
        fields["editable"] = _property(node, "readonly") is not True
    elif value is not None and _role(node) == "combobox":
        fields["value" if fields["text"] else "text"] = str(value)[:MOST_TEXT]
    elif value is not None and role == "text":
        fields["value"] = str(value)[:MOST_TEXT]
    elif role in ("tab", "item"):
        fields["selected"] = _property(node, "selected") or None
    return _element(role, node, layout, **fields)


def _element(role: Role, node: Reply, layout: _Layout, **fields: Any) -> tuple[Element, int]:
    bounds = layout.bounds.get(_number(node))
    return Element(index=0, role=role, bounds=bounds, **fields), _number(node)


def _counts(flags: Iterable[bool]) -> list[int]:
    return list(accumulate(flags, initial=0))


def _actable(node: Reply) -> bool:
    return not node.get("ignored") and _ROLES.get(_role(node)) in _ACTABLE


def _number(node: Reply) -> int:
    return int(node.get("backendDOMNodeId", -1))


def _role(node: Reply) -> str:
    return str(node.get("role", {}).get("value", ""))


def _text(node: Reply, key: str) -> str:
    return " ".join(str(node.get(key, {}).get("value") or "").split())[:MOST_TEXT]


def _name(node: Reply) -> str:
    return _text(node, "name")


def _property(node: Reply, name: str) -> Any:
    found = (entry for entry in node.get("properties", ()) if entry["name"] == name)
    return next((entry["value"].get("value") for entry in found), None)
