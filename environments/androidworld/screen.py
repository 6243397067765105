"""Screens of Android in the form of the simulated phone's screens.

The source is android-env's accessibility forest, which lists every node of every window. An agent
gets what a person would name:

- one element for what reacts to a touch, with the texts inside it: ``app`` (an icon of the home
  screen), ``item`` (a row of a list), ``switch``, ``checkbox`` and ``radio`` with their state,
  ``field``, ``button``, ``tab``;
- ``label`` for what can only be read, and the label ``more`` for a list that scrolls;
- no bar with the time and the battery, and no keyboard. The app and the title of its screen are
  ``Observation.app``, as on the phone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from swarm_ui.observation import Element, Observation, Role

_ROLES: tuple[tuple[str, Role], ...] = (  # first match in the class name wins
    ("Switch", "switch"),
    ("ToggleButton", "switch"),
    ("CheckBox", "checkbox"),
    ("CheckedText", "checkbox"),
    ("RadioButton", "radio"),
    ("Button", "button"),
    ("Tab", "tab"),
)
_KEYBOARD, _SYSTEM = (2, "TYPE_INPUT_METHOD"), (3, "TYPE_SYSTEM")
"""Types of windows in the forest, as protobuf numbers and names them."""
_SCROLL_FORWARD = 4096
"""Android's number of the action."""
_TITLE_PART, _ROW_PART = 0.125, 0.5
"""A title ends in this upper part of the screen; a row is at most this part of it high."""
HOME = "home"
"""Name of the home screen, as on the phone."""


def read_screen(forest: Any, size: tuple[int, int]) -> Observation:
    """The elements of android-env's ``AndroidAccessibilityForest``, from the active window, and as
    ``app`` the name of the app, with the title of its screen if that is another text.

    Args:
        forest: the forest.
        size: width and height of the screen in pixels.
    """
    windows = [w for w in forest.windows if w.tree.nodes and w.window_type not in _KEYBOARD]
    shown = [w for w in windows if w.is_active or w.is_focused]
    shown = shown or [w for w in windows if w.window_type not in _SYSTEM]
    app, found = "", list[Element]()
    for window in shown:
        reader = _Reader(window, size)
        for root in reader.roots:
            found += reader.elements(root)
        app = app or reader.place()
    return Observation(goal="", elements=tuple(found), app=app)


class _Reader:
    """Reads one window."""

    def __init__(self, window: Any, size: tuple[int, int]) -> None:
        self._nodes = {node.unique_id: node for node in window.tree.nodes}
        self._size = size
        inner = {child for node in window.tree.nodes for child in node.child_ids}
        self.roots = [node for node in window.tree.nodes if node.unique_id not in inner]
        package = next((n.package_name for n in window.tree.nodes if n.package_name), "")
        self._home = "launcher" in package
        self.app = HOME if self._home else (window.title or package.rpartition(".")[2]).casefold()
        self.title = ""
        """Set while the elements are read."""

    def place(self) -> str:
        """The app, and the title of the screen if it is not the app's name."""
        named = self.title.casefold() in ("", self.app)
        return self.app if named else f"{self.app} {self.title}"

    def elements(self, node: Any, above: str = "") -> Iterator[Element]:
        """The elements of a node and its descendants, in the order of the tree.

        Args:
            node: the node.
            above: label of the touchable node that contains this one.
        """
        if _touchable(node) and self._seen(node) and not self._holds_a_screen(node):
            texts, state, rest = self._inside(node)
            names = list(dict.fromkeys(filter(None, (node.text, *texts))))
            names = names or [node.content_description or above]
            yield self._touched(node, names, state)
            for inner in rest:
                yield from self.elements(inner, names[0])
            return
        children = [self._nodes[k] for k in node.child_ids if k in self._nodes]
        lines = [child for child in children if self._is_text(child)]
        boxes = [child for child in children if _state_only(child)]
        if children and len(children) <= 3 and len(lines) + len(boxes) == len(children) > 1:
            names = [_said(child) for child in lines]
            if len(boxes) == 1 and names:  # a text, and the switch that it names
                yield self._touched(boxes[0], names, boxes[0])
                return
            if not boxes and not any(self._is_title(child) for child in lines):
                yield self._label(node, names)
                return
        if self._is_text(node):
            if self._is_title(node):
                self.title = node.text
            else:
                yield self._label(node, [_said(node)])
        for child in children:
            yield from self.elements(child, above)
        actions = [action.id for action in node.actions]
        if node.is_scrollable and self._seen(node) and (not actions or _SCROLL_FORWARD in actions):
            yield self._element(node, "label", text="more", clickable=False, scrollable=True)

    def _inside(self, node: Any) -> tuple[list[str], Any, list[Any]]:
        """What a touchable node holds: texts, the node with its state or ``None``, and touchable
        nodes."""
        texts, state, rest = list[str](), (node if node.is_checkable else None), list[Any]()
        for child in (self._nodes[k] for k in node.child_ids if k in self._nodes):
            if not child.is_visible_to_user:
                continue
            if _touchable(child):
                rest.append(child)
                continue
            if child.is_checkable:
                state = state or child
            elif _said(child):
                texts.append(_said(child))
            more, inner, others = self._inside(child)
            texts, state, rest = texts + more, state or inner, rest + others
        return texts, state, rest

    def _touched(self, node: Any, names: list[str], state: Any) -> Element:
        role = self._role(node, state)
        if role == "field":
            return self._field(node, names[0])
        rest = " · ".join(names[1:])
        return self._element(
            node,
            role,
            text=names[0] or _resource(node),
            description=node.content_description,
            value=rest or None,
            checked=None if state is None or role == "tab" else state.is_checked,
            selected=True if node.is_selected else None,
        )

    def _field(self, node: Any, name: str) -> Element:
        hint = node.hint_text
        value = "" if node.text == hint else node.text  # an empty field reports its hint as text
        label = next(filter(None, (self._label_of(node), node.content_description)), "")
        if not hint and not label:
            label = name if name != value else _resource(node)
        return self._element(node, "field", text=label, hint=hint, value=value, editable=True)

    def _label_of(self, node: Any) -> str:
        """Text of the node that Android names as the label of a field."""
        label = self._nodes.get(node.labeled_by_id) if node.labeled_by_id else None
        return _said(label) if label is not None else ""

    def _label(self, node: Any, names: list[str]) -> Element:
        value = " · ".join(names[1:]) or None
        return self._element(node, "label", text=names[0], value=value, clickable=False)

    def _element(self, node: Any, role: Role, **fields: Any) -> Element:
        return Element(
            role=role,
            enabled=node.is_enabled,
            focused=node.is_focused,
            bounds=self._box(node),
            **fields,
        )

    def _role(self, node: Any, state: Any) -> Role:
        if node.is_editable or "EditText" in node.class_name:
            return "field"
        for one in (node, state):
            name = "" if one is None else one.class_name.rpartition(".")[2]
            for part, role in _ROLES:
                if part in name:
                    return role
        if state is not None:
            return "checkbox"
        if "Image" in node.class_name:
            return "button"
        return "app" if self._home else "item"

    def _box(self, node: Any) -> tuple[int, int, int, int]:
        box, (width, height) = node.bounds_in_screen, self._size
        return max(box.left, 0), max(box.top, 0), min(box.right, width), min(box.bottom, height)

    def _seen(self, node: Any) -> bool:
        left, top, right, bottom = self._box(node)
        return bool(node.is_visible_to_user) and left < right and top < bottom

    def _holds_a_screen(self, node: Any) -> bool:
        """Whether a node is no row but a part of the screen with rows of its own."""
        _, top, _, bottom = self._box(node)
        return bool(node.child_ids) and bottom - top > _ROW_PART * self._size[1]

    def _is_text(self, node: Any) -> bool:
        leaf = not node.child_ids and not _touchable(node) and not node.is_checkable
        return leaf and bool(_said(node)) and self._seen(node)

    def _is_title(self, node: Any) -> bool:
        high = node.bounds_in_screen.bottom <= _TITLE_PART * self._size[1]
        return high and not self.title and not self._home and bool(node.text)


def _touchable(node: Any) -> bool:
    return bool(node.is_clickable or node.is_long_clickable or node.is_editable)


def _state_only(node: Any) -> bool:
    """Whether a node is a switch without a name."""
    return bool(node.is_checkable) and not node.child_ids and not _said(node)


def _said(node: Any) -> str:
    return str(node.text or node.content_description)


def _resource(node: Any) -> str:
    """The name of a node in the app's code, such as "first name", for want of a label."""
    return str(node.view_id_resource_name).rpartition("/")[2].replace("_", " ")
