"""The accessibility tree of a handset's screen, as Android's services report it."""

from __future__ import annotations

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
from swarm_ui.environments.phone.device.widget import Widget

SYSTEM = "com.android.systemui"
_CLASSES = {
    "app": "TextView", "button": "Button", "icon": "ImageButton", "field": "EditText",
    "area": "EditText", "checkbox": "CheckBox", "radio": "RadioButton", "image": "ImageView",
    "switch": "Switch",
}  # fmt: skip
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
        if self.kind == "RecyclerView":
            return "androidx.recyclerview.widget.RecyclerView"
        return f"android.view.{self.kind}" if self.kind == "View" else f"android.widget.{self.kind}"


def windows(handset: Handset, geometry: ScreenGeometry) -> tuple[Node, Node]:
    """The window of the app in front, and the status bar."""
    package = handset.component.partition("/")[0]
    body: list[Node] = []
    if handset.stack:
        body.extend(_title(package, geometry.title, len(handset.stack) > 1))
    fixed = [_node(package, handset, one) for one in geometry.placed if not one.scrolled]
    moving = tuple(_node(package, handset, one) for one in geometry.placed if one.scrolled)
    left, top, right, bottom = geometry.area
    scroller = Node(
        kind="RecyclerView",
        box=(left * SCALE, top * SCALE, right * SCALE, bottom * SCALE),
        package=package,
        scrollable=geometry.pages > 1,
        focusable=geometry.pages > 1,
        children=moving,
    )
    above = [node for node in fixed if node.box[1] < scroller.box[1]]
    below = [node for node in fixed if node.box[1] >= scroller.box[1]]
    parts = (*body, *above, *((scroller,) if moving else ()), *below)
    return Node(kind="FrameLayout", box=_FULL, package=package, children=parts), _status(handset)


def _title(package: str, title: str, deep: bool) -> list[Node]:
    bar = (TOP - 60) * SCALE
    text = Node(kind="TextView", box=(128, bar, 1040, bar + 88), package=package, text=title)
    if not deep:
        return [text]
    up = Node(
        kind="ImageButton",
        box=(24, bar, 104, bar + 88),
        package=package,
        description="Navigate up",
        clickable=True,
        focusable=True,
    )
    return [up, text]


def _status(handset: Handset) -> Node:
    clock = Node(
        kind="TextView",
        box=(40, 16, 160, 64),
        package=SYSTEM,
        text=f"{handset.when():%H:%M}",
        description=f"{handset.when():%H:%M}",
        resource=f"{SYSTEM}:id/clock",
    )
    battery = Node(
        kind="LinearLayout", box=(960, 16, 1040, 64), package=SYSTEM,
        description="Battery 100 percent.", resource=f"{SYSTEM}:id/battery",
    )  # fmt: skip
    box = (0, 0, WIDTH * SCALE, 80)
    return Node(kind="FrameLayout", box=box, package=SYSTEM, children=(clock, battery))


def _node(package: str, handset: Handset, placed: Placed) -> Node:
    widget, box, role = placed.widget, placed.pixels, placed.widget.role
    touchable = widget.effect is not None or getattr(widget, "slider", None) is not None
    long_clickable = role == "app" or getattr(widget, "long_press", None) is not None
    if role in ("field", "area"):
        return _editor(package, handset, widget, box)
    if role in ("item", "text", "switch"):
        return _row(package, widget, box, touchable, long_clickable)
    return Node(
        kind=_CLASSES.get(role, "TextView"),
        box=box,
        package=package,
        text=widget.text,
        description=widget.description or (widget.text if role in ("app", "tab") else ""),
        checkable=widget.checked is not None,
        checked=bool(widget.checked),
        clickable=touchable,
        focusable=touchable,
        long_clickable=long_clickable,
        selected=role == "tab" and bool(widget.checked),
    )


def _editor(package: str, handset: Handset, widget: Widget, box: Box) -> Node:
    assert widget.field is not None
    return Node(
        kind="EditText",
        box=box,
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


def _row(package: str, widget: Widget, box: Box, touchable: bool, long_clickable: bool) -> Node:
    """A row that handles touches itself and has its texts as child nodes."""
    left, top, right, bottom = box
    middle = (top + bottom) // 2
    edge = right - 160 if widget.role == "switch" else right - 24
    inside = [
        Node(
            kind="TextView",
            box=(left + 24, top + 8, edge, bottom - 8 if widget.value is None else middle),
            package=package,
            text=widget.text,
        )
    ]
    if widget.value is not None:
        place = (left + 24, middle, edge, bottom - 8)
        inside.append(Node(kind="TextView", box=place, package=package, text=widget.value))
    if widget.role == "switch":
        inside.append(
            Node(
                kind="Switch",
                box=(edge, top + 8, right - 24, bottom - 8),
                package=package,
                description=widget.description,
                checkable=True,
                checked=bool(widget.checked),
            )
        )
    return Node(
        kind="LinearLayout",
        box=box,
        package=package,
        clickable=touchable,
        focusable=touchable,
        long_clickable=long_clickable,
        children=tuple(inside),
    )


def to_xml(root: Node) -> str:
    """The tree as ``uiautomator dump`` writes it."""
    head = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
    return f'{head}<hierarchy rotation="0">{_xml(root, 0)}</hierarchy>'


def _xml(node: Node, index: int) -> str:
    left, top, right, bottom = node.box
    values = {
        "index": str(index),
        "text": node.text,
        "resource-id": node.resource,
        "class": node.class_name,
        "package": node.package,
        "content-desc": node.description,
        "checkable": node.checkable,
        "checked": node.checked,
        "clickable": node.clickable,
        "enabled": True,
        "focusable": node.focusable,
        "focused": node.focused,
        "scrollable": node.scrollable,
        "long-clickable": node.long_clickable,
        "password": False,
        "selected": node.selected,
        "bounds": f"[{left},{top}][{right},{bottom}]",
    }
    attributes = " ".join(
        f"{key}={quoteattr(_xml_value(v), _ESCAPES)}" for key, v in values.items()
    )
    children = "".join(_xml(child, k) for k, child in enumerate(node.children))
    return f"<node {attributes}>{children}</node>" if children else f"<node {attributes} />"


def _xml_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_ESCAPES = {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}
