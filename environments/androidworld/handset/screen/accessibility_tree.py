"""The accessibility tree of a handset's screen, as Android's services report it."""

from __future__ import annotations

from functools import partial
from xml.sax.saxutils import quoteattr

import msgspec

from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.screen.geometry import (
    HEIGHT,
    SCALE,
    TOP,
    WIDTH,
    Box,
    Placed,
    ScreenGeometry,
)
from swarm_ui.environments.phone.state import Widget

SYSTEM = "com.android.systemui"
_CLASSES = {
    "app": "TextView", "button": "Button", "icon": "ImageButton", "field": "EditText",
    "area": "EditText", "checkbox": "CheckBox", "radio": "RadioButton", "image": "ImageView",
    "switch": "Switch", "tab": "Tab",
}  # fmt: skip
_ELSEWHERE = {
    "RecyclerView": "androidx.recyclerview.widget.RecyclerView",
    "Tab": "androidx.appcompat.app.ActionBar$Tab",
}
"""Names of classes that are not in ``android.widget``."""
_FULL: Box = (0, 0, WIDTH * SCALE, HEIGHT * SCALE)


FLAGS = (
    "checkable", "checked", "clickable", "editable", "focusable", "focused", "long_clickable",
    "scrollable", "selected",
)  # fmt: skip
"""The boolean fields of a node."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node with its children."""

    kind: str
    """Class name without ``android.widget.``."""
    box: Box
    package: str
    text: str = ""
    description: str = ""
    hint: str = ""
    resource: str = ""
    checkable: bool = False
    checked: bool = False
    clickable: bool = False
    editable: bool = False
    focusable: bool = False
    focused: bool = False
    long_clickable: bool = False
    scrollable: bool = False
    selected: bool = False
    children: tuple[Node, ...] = ()

    @property
    def class_name(self) -> str:
        if self.kind in _ELSEWHERE:
            return _ELSEWHERE[self.kind]
        return f"android.view.{self.kind}" if self.kind == "View" else f"android.widget.{self.kind}"


def windows(handset: Handset, geometry: ScreenGeometry) -> tuple[Node, Node]:
    """The window of the foreground app, and the status bar."""
    package = handset.component.partition("/")[0]
    title = _title(package, geometry.title, len(handset.stack) > 1) if handset.stack else ()
    fixed = [_node(package, handset, one) for one in geometry.placed if not one.scrolled]
    moving = tuple(_node(package, handset, one) for one in geometry.placed if one.scrolled)
    left, top, right, bottom = (SCALE * edge for edge in geometry.area)
    scrolls = geometry.pages > 1
    scroller = Node(
        kind="RecyclerView", box=(left, top, right, bottom), package=package, scrollable=scrolls,
        focusable=scrolls, children=moving,
    )  # fmt: skip
    above = [node for node in fixed if node.box[1] < top]
    below = [node for node in fixed if node.box[1] >= top]
    parts = (*title, *above, *((scroller,) if moving else ()), *below)
    return Node(kind="FrameLayout", box=_FULL, package=package, children=parts), _status(handset)


def _title(package: str, title: str, deep: bool) -> tuple[Node, ...]:
    top, bottom = (TOP - 60) * SCALE, (TOP - 16) * SCALE
    text = Node(kind="TextView", box=(128, top, 1040, bottom), package=package, text=title)
    up = Node(
        kind="ImageButton", box=(24, top, 104, bottom), package=package, description="Navigate up",
        clickable=True, focusable=True,
    )  # fmt: skip
    return (up, text) if deep else (text,)


def _status(handset: Handset) -> Node:
    now = f"{handset.when():%H:%M}"
    clock = Node(
        kind="TextView", box=(40, 16, 160, 64), package=SYSTEM, text=now, description=now,
        resource=f"{SYSTEM}:id/clock",
    )  # fmt: skip
    battery = Node(
        kind="LinearLayout", box=(960, 16, 1040, 64), package=SYSTEM,
        description="Battery 100 percent.", resource=f"{SYSTEM}:id/battery",
    )  # fmt: skip
    box = (0, 0, WIDTH * SCALE, 80)
    return Node(kind="FrameLayout", box=box, package=SYSTEM, children=(clock, battery))


def _node(package: str, handset: Handset, placed: Placed) -> Node:
    widget, role = placed.widget, placed.widget.role
    touchable = widget.effect is not None or getattr(widget, "slider", None) is not None
    plain = Node(
        kind=_CLASSES.get(role, "TextView"),
        box=placed.pixels,
        package=package,
        text=widget.text,
        description=widget.description or (widget.text if role in ("app", "tab") else ""),
        checkable=widget.checked is not None and role != "tab",
        checked=bool(widget.checked) and role != "tab",
        clickable=touchable,
        focusable=touchable,
        long_clickable=role == "app" or getattr(widget, "long_press", None) is not None,
        selected=role == "tab" and bool(widget.checked),
    )
    if role in ("item", "text", "switch"):
        return _row(plain, widget)
    if widget.field is None:
        return plain
    return Node(
        kind="EditText",
        box=plain.box,
        package=package,
        text=widget.value or widget.text,  # an empty field reports its hint, as on Android
        hint=widget.text,
        resource=f"{package}:id/{widget.field.replace(' ', '_')}",
        clickable=True,
        editable=True,
        focusable=True,
        focused=handset.focus == widget.field,
        long_clickable=True,
    )


def _row(plain: Node, widget: Widget) -> Node:
    """A row that handles touches itself and has its texts as child nodes."""
    left, top, right, bottom = plain.box
    middle = (top + bottom) // 2
    switch = widget.role == "switch"
    edge = right - 160 if switch else right - 24
    inner = partial(Node, package=plain.package)
    end = bottom - 8 if widget.value is None else middle
    inside = [inner(kind="TextView", box=(left + 24, top + 8, edge, end), text=widget.text)]
    if widget.value is not None:
        box = (left + 24, middle, edge, bottom - 8)
        inside.append(inner(kind="TextView", box=box, text=widget.value))
    if switch:
        box = (edge, top + 8, right - 24, bottom - 8)
        inside.append(
            inner(kind="Switch", box=box, description=widget.description, checkable=True,
                  checked=bool(widget.checked))
        )  # fmt: skip
    return Node(
        kind="LinearLayout",
        box=plain.box,
        package=plain.package,
        clickable=plain.clickable,
        focusable=plain.focusable,
        long_clickable=plain.long_clickable,
        children=tuple(inside),
    )


def to_xml(root: Node) -> str:
    """The tree as ``uiautomator dump`` writes it."""
    head = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
    return f'{head}<hierarchy rotation="0">{_xml(root, 0)}</hierarchy>'


def _xml(node: Node, index: int) -> str:
    left, top, right, bottom = node.box
    flags = (
        "checkable", "checked", "clickable", "enabled", "focusable", "focused", "scrollable",
        "long-clickable", "password", "selected",
    )  # fmt: skip
    values = {
        "index": str(index),
        "text": node.text,
        "resource-id": node.resource,
        "class": node.class_name,
        "package": node.package,
        "content-desc": node.description,
        **{f: str(getattr(node, f.replace("-", "_"), f == "enabled")).lower() for f in flags},
        "bounds": f"[{left},{top}][{right},{bottom}]",
    }
    attributes = " ".join(f"{key}={quoteattr(v, _ESCAPES)}" for key, v in values.items())
    children = "".join(_xml(child, k) for k, child in enumerate(node.children))
    return f"<node {attributes}>{children}</node>" if children else f"<node {attributes} />"


_ESCAPES = {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}
