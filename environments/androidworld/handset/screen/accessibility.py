"""The accessibility tree of a handset's screen, as Android's services report it. Importing this
module needs the extra ``android``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from android_env.proto.a11y import android_accessibility_forest_pb2 as forest_pb2
from android_env.proto.a11y import android_accessibility_window_info_pb2 as window_pb2

from swarm_ui.environments.androidworld.handset.handset import Control, Handset
from swarm_ui.environments.androidworld.handset.screen import geometry
from swarm_ui.environments.androidworld.handset.screen.geometry import SCALE, TOP, Box, Placed
from swarm_ui.environments.phone.state import Widget

_CLASSES = {
    "button": "android.widget.Button", "icon": "android.widget.ImageButton",
    "field": "android.widget.EditText", "area": "android.widget.EditText",
    "checkbox": "android.widget.CheckBox", "radio": "android.widget.RadioButton",
    "image": "android.widget.ImageView", "tab": "androidx.appcompat.app.ActionBar$Tab",
}  # fmt: skip
_TEXT, _ROW = "android.widget.TextView", "android.widget.LinearLayout"
_LIST = "androidx.recyclerview.widget.RecyclerView"
_FULL: Box = (0, 0, geometry.WIDTH * SCALE, geometry.HEIGHT * SCALE)


def accessibility_forest(handset: Handset) -> Any:
    """``AndroidAccessibilityForest`` with the window of the foreground app."""
    forest = forest_pb2.AndroidAccessibilityForest()
    window = forest.windows.add()
    window.id = window.layer = 1
    window.window_type = window_pb2.AndroidAccessibilityWindowInfo.WindowType.TYPE_APPLICATION
    window.is_active = window.is_focused = True
    window.title = handset.front_app.name if handset.front_app else "home"
    _bounds(window.bounds_in_screen, _FULL)
    _Tree(window.tree, handset).build()
    return forest


class _Tree:
    """Writes the nodes of the screen into a message."""

    def __init__(self, message: Any, handset: Handset) -> None:
        self._message, self._handset = message, handset
        self._package = handset.component.partition("/")[0]

    def build(self) -> None:
        layout = geometry.lay_out(self._handset)
        area: Box = tuple(SCALE * edge for edge in layout.area)  # type: ignore[assignment]
        title = self._title(layout.title) if self._handset.stack else []
        fixed = [one for one in layout.placed if not one.scrolled]
        above = [self._placed(one) for one in fixed if one.pixels[1] < area[1]]
        moving = [self._placed(one) for one in layout.placed if one.scrolled]
        scrolls = layout.pages > 1
        middle = [self._add(_LIST, area, moving, is_scrollable=scrolls)] if moving else []
        below = [self._placed(one) for one in fixed if one.pixels[1] >= area[1]]
        self._add("android.widget.FrameLayout", _FULL, [*title, *above, *middle, *below])

    def _add(self, kind: str, box: Box, children: Sequence[int] = (), /, **fields: Any) -> int:
        """Append a node after its children. Returns its number."""
        number = len(self._message.nodes)
        node = self._message.nodes.add(
            unique_id=number, window_id=1, class_name=kind, package_name=self._package,
            child_ids=children, is_enabled=True, is_visible_to_user=True, **fields,
        )  # fmt: skip
        _bounds(node.bounds_in_screen, box)
        return number

    def _title(self, title: str) -> list[int]:
        top, bottom = (TOP - 60) * SCALE, (TOP - 16) * SCALE
        nodes = list[int]()
        if len(self._handset.stack) > 1:
            up = {"content_description": "Navigate up", **_touchable(True)}
            nodes.append(self._add(_CLASSES["icon"], (24, top, 104, bottom), **up))
        return [*nodes, self._add(_TEXT, (128, top, 1040, bottom), text=title)]

    def _placed(self, placed: Placed) -> int:
        widget, role = placed.widget, placed.widget.role
        held = isinstance(widget, Control) and widget.long_press is not None
        touched = {**_touchable(widget.effect is not None), "is_long_clickable": held}
        if role in ("item", "text", "switch"):
            return self._add(_ROW, placed.pixels, self._inside(widget, placed.pixels), **touched)
        if widget.field is not None:
            return self._add(
                _CLASSES[role], placed.pixels, text=widget.value or widget.text,
                hint_text=widget.text,  # an empty field reports its hint as text, as on Android
                view_id_resource_name=f"{self._package}:id/{widget.field.replace(' ', '_')}",
                is_editable=True, is_focused=self._handset.focus == widget.field,
                is_long_clickable=True, **_touchable(True),
            )  # fmt: skip
        tab = role == "tab"
        return self._add(
            _CLASSES.get(role, _TEXT), placed.pixels, text=widget.text,
            content_description=widget.description or (widget.text if tab or role == "app" else ""),
            is_checkable=widget.checked is not None and not tab,
            is_checked=bool(widget.checked) and not tab, is_selected=bool(widget.checked) and tab,
            **touched,
        )  # fmt: skip

    def _inside(self, widget: Widget, box: Box) -> list[int]:
        """The texts and the switch of a row, which itself handles the touches."""
        left, top, right, bottom = box
        switch, middle = widget.role == "switch", (top + bottom) // 2
        edge = right - 160 if switch else right - 24
        end = bottom - 8 if widget.value is None else middle
        nodes = [self._add(_TEXT, (left + 24, top + 8, edge, end), text=widget.text)]
        if widget.value is not None:
            nodes.append(self._add(_TEXT, (left + 24, middle, edge, bottom - 8), text=widget.value))
        if switch:
            state = {"is_checkable": True, "is_checked": bool(widget.checked)}
            place = (edge, top + 8, right - 24, bottom - 8)
            nodes.append(self._add("android.widget.Switch", place, **state))
        return nodes


def _touchable(yes: bool) -> dict[str, bool]:
    return {"is_clickable": yes, "is_focusable": yes}


def _bounds(message: Any, box: Box) -> None:
    message.left, message.top, message.right, message.bottom = box
