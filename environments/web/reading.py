"""Reads the elements that a tab shows from the browser's accessibility tree and layout.

Both come from the browser, not from a script in the page. The tree gives the roles, states and
names of elements, the layout the text that is painted. A page can choose the names and leave
elements out of the tree (``aria-label``, ``aria-hidden``), so what is painted decides: invisible
elements are left out, visible ones that the tree does not have are added, and where the painted
text differs from the name, it is the text and the name the description. Frames and shadow roots,
open or closed, are part of the page.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from msgspec.structs import replace

from swarm_ui.environments.web import css
from swarm_ui.environments.web.browser import Rejected, Reply, whole
from swarm_ui.environments.web.page_layout import Bounds, Layout, layout_of
from swarm_ui.environments.web.painting import Painting
from swarm_ui.environments.web.tab import Tab
from swarm_ui.observation import Element, Role

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

_TAGS: dict[str, Role] = {"BUTTON": "button", "A": "link", "INPUT": "field", "TEXTAREA": "area",
                          "OPTION": "option"}  # fmt: skip
"""Roles of controls that the accessibility tree leaves out."""
_FIELDS = ("INPUT", "TEXTAREA", "OPTION")
_TYPES: dict[str, Role] = {
    "submit": "button", "button": "button", "reset": "button", "image": "button", "checkbox":
    "checkbox", "radio": "radio",
}  # fmt: skip

Tree = Mapping[str, Reply]


class Seen(NamedTuple):
    """The elements of a page, and the browser's number of each one's node."""

    elements: tuple[Element, ...]
    nodes: tuple[int, ...]
    title: str
    above: int
    """Number of elements that are above the visible part and not listed."""
    below: int


async def read(tab: Tab, size: tuple[int, int]) -> Seen:
    """The elements in the window and half a window around it, in reading order.

    Raises:
        Rejected: the page changed while it was read.
    """
    snapshot = await tab.call(
        "DOMSnapshot.captureSnapshot",
        computedStyles=css.STYLES,
        includePaintOrder=True,
        includeDOMRects=True,
    )
    layout = layout_of(snapshot, size[1])
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


class _Document:
    """The accessibility tree of a frame in reading order, without recursion: pages nest deeply."""

    def __init__(self, tree: Tree, layout: Layout) -> None:
        self._tree = tree
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

    def around(self, node: Reply) -> Reply | None:
        """The node that a node is in."""
        return self._tree.get(node.get("parentId", ""))

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
    frame: str, trees: Mapping[str, Tree], layout: Layout
) -> Iterator[tuple[Element, int]]:
    """The visible elements of a frame and of the frames in it."""
    painting = layout.paintings.get(frame)
    if painting is None:  # it was removed meanwhile
        return
    walk = _Walk(_Document(trees.get(frame, {}), layout), layout, painting)
    found = list(walk.listed())
    last = 0
    for place, number, element in walk.left_out():  # each goes before what follows it on the page
        while last < len(found) and painting.places.get(found[last][0], -1) < place:
            last += 1
        found.insert(last, (number, element))
    for number, element in found:
        if element is None:
            yield from _elements(layout.frames[number], trees, layout)
        else:
            yield element, number


Found = tuple[int, Element | None]
"""A node and its element; ``None`` for a frame, whose elements follow."""


class _Walk:
    """Lists what is visible in a frame."""

    def __init__(self, document: _Document, layout: Layout, painting: Painting) -> None:
        self._document, self._layout, self._painting = document, layout, painting
        self._told = {_number(node) for node in document.nodes if not node.get("ignored")}
        self._whole: set[int] = set()
        """Places of elements with everything that is in them."""
        shown = (n for n in document.nodes if _actable(n) and painting.offers(_number(n)))
        self._names = {_name(node) for node in shown}
        self._keys = {_key(name) for name in self._names}

    def listed(self) -> Iterator[Found]:
        """The visible elements of the accessibility tree."""
        document, painting = self._document, self._painting
        place, label_end, owners = 0, 0, [("", len(document.nodes))]
        while place < len(document.nodes):
            node, at, end = document.nodes[place], place, document.ends[place]
            while at >= owners[-1][1]:
                owners.pop()
            place += 1
            number, raw, name = _number(node), _role(node), _name(node)
            if number in self._layout.frames:
                self._told.add(number)
                if painting.shows(number):
                    yield number, None
                place = end
            elif raw == "InlineTextBox":
                place = end
            elif raw == "LabelText":
                label_end = end
            elif raw == "StaticText":
                text = self._text(node)
                # The text of a label is listed with its control.
                if text and not (at < label_end and text in self._names):
                    yield number, self._element(node, role="text", text=text, clickable=False)
            elif raw in ("combobox", "listbox") and self._has_options(at):
                if painting.offers(number):
                    owners.append((name or owners[-1][0], end))  # its options are listed by name
                else:
                    place = end
            else:
                element, whole = self._control(at, owners[-1][0])
                if element is not None:
                    place = end if whole else place
                    seen = self._as_seen(element, at, whole)
                    if whole:
                        self._whole.add(painting.places.get(number, -1))
                    if seen is not None:
                        yield number, seen

    def left_out(self) -> Iterator[tuple[int, int, Element | None]]:
        """Visible elements that the accessibility tree does not have, with their places."""
        painting = self._painting
        texts = set(painting.visible_texts())
        for place, (number, tag) in enumerate(zip(painting.numbers, painting.tags, strict=True)):
            field = tag in _FIELDS and painting.attribute(place, "type") != "hidden"
            frame = number in self._layout.frames
            if not (place in texts or field or frame) or number in self._told:
                continue
            around = list(painting.within(place))
            if not self._whole.isdisjoint(around):
                continue
            if frame or field:
                self._whole.add(place)
                if painting.shows(number):
                    yield place, number, None if frame else self._hidden(place, tag, around)
                continue
            labels = (one for one in around if painting.tags[one] == "LABEL")
            if any(_key(painting.text(one)) in self._keys for one in labels):
                continue
            if any(_is_letter(letter) for letter in painting.text(place)):
                owner = next((one for one in around if self._is_pressed(one)), place)
                self._whole.add(owner)
                yield (
                    owner,
                    painting.numbers[owner],
                    self._hidden(owner, painting.tags[owner], around),
                )

    def _is_pressed(self, place: int) -> bool:
        number, tag = self._painting.numbers[place], self._painting.tags[place]
        if tag in _TAGS:
            return True
        pressed = number in self._layout.listening or number in self._layout.pointing
        return pressed and len(self._painting.text(place)) <= MOST_CARD and tag != "BODY"

    def _hidden(self, place: int, tag: str, around: Sequence[int]) -> Element:
        """An element that the page hides from the accessibility tree."""
        painting = self._painting
        kind = (painting.attribute(place, "type") or "").lower()
        role: Role = _TAGS.get(tag, "item" if self._is_pressed(place) else "text")
        role = _TYPES.get(kind, role) if tag == "INPUT" else role
        # An inert element cannot be pressed.
        acts = any(painting.attribute(one, "aria-hidden") == "true" for one in around)
        fields: dict[str, Any] = {"clickable": acts and role != "text"}
        if role in ("field", "area"):
            fields |= {"value": painting.value(place)[:MOST_TEXT], "editable": acts}
        elif role in ("checkbox", "radio"):
            fields["checked"] = place in painting.ticked
        text = "" if role in ("field", "area") else painting.text(place)[:MOST_TEXT]
        bounds = self._layout.bounds.get(painting.numbers[place])
        return Element(index=0, role=role, text=text, bounds=bounds, **fields)

    def _text(self, node: Reply) -> str:
        """The visible part of a text."""
        name, painting = _name(node), self._painting
        while _number(node) < 0 and (around := self._document.around(node)) is not None:
            node = around  # a text of a style sheet is known by its place
        place = painting.places.get(_number(node))
        if place is None:  # a part that the browser itself made
            return name
        self._told.add(_number(node))
        if not painting.tags[place].startswith(("#", "::")):
            return name if painting.shows(_number(node)) else ""
        text = painting.text(place)
        return name if _key(text) == _key(name) else text

    def _has_options(self, at: int) -> bool:
        """Whether a list of choices has its options inside it. The options of a combobox that a
        page makes itself may be elsewhere; it opens them when it is pressed."""
        node = self._document.nodes[at]
        if _property(node, "editable"):
            return False
        return _role(node) == "listbox" or self._document.has_control(at)

    def _control(self, at: int, owner: str) -> tuple[Element | None, bool]:
        """The element of a node, and whether everything in it belongs to it."""
        document, node = self._document, self._document.nodes[at]
        role = None if node.get("ignored") else _ROLES.get(_role(node))
        alone = not document.has_control(at)
        if self._takes_file(node):
            return self._element(node, hint="path of a file", **_state("field", node, owner)), True
        if _role(node) == "combobox" and not _property(node, "editable"):
            return self._element(node, **_state("button", node, owner)), True
        if role is not None:
            whole = role == "field" or (role in _WHOLE and alone)
            return self._element(node, **_state(role, node, owner)), whole
        if _property(node, "editable") and _property(node, "focusable"):  # the text of an editor
            return self._element(node, **_state("field", node, owner)), alone
        if self._is_card(at):
            place = self._painting.places.get(_number(node))
            tag = "" if place is None or not node.get("ignored") else self._painting.tags[place]
            if tag not in _FIELDS:
                return self._element(node, role=_TAGS.get(tag, "item"), text=_name(node)), True
        return None, False

    def _takes_file(self, node: Reply) -> bool:
        place = self._painting.places.get(_number(node))
        if place is None or self._painting.tags[place] != "INPUT" or node.get("ignored"):
            return False
        return (self._painting.attribute(place, "type") or "").lower() == "file"

    def _is_card(self, at: int) -> bool:
        """Whether a node without a role is pressed as a whole, such as a card or a tile."""
        document, node = self._document, self._document.nodes[at]
        pressed = _number(node) in self._layout.listening or _number(node) in self._layout.pointing
        if not pressed or document.has_control(at) or document.listens_inside(at):
            return False
        return len(document.text(at)) <= MOST_CARD and _role(node) != "RootWebArea"

    def _as_seen(self, element: Element, at: int, whole: bool) -> Element | None:
        """An element with the text that is painted; ``None`` if it is invisible."""
        painting, number = self._painting, _number(self._document.nodes[at])
        place = painting.places.get(number)
        if place is None or painting.tags[place] == "AREA":  # part of the browser, or of a picture
            return element
        name, choice, written = element.text, painting.option(place), painting.written(place)
        text = (choice or painting.text(place))[:MOST_TEXT]
        keyed = element.editable and element.focused  # what is typed goes there
        if not (text or keyed or painting.offers(number, filled=written)):
            return None
        if painting.tags[place] == "LABEL" and _key(text) in self._keys:
            return element  # its text is listed with its control
        if element.role in ("field", "area"):
            return element
        if not whole:  # its parts are listed, too
            return element if _key(name) in _key(text) else _renamed(element, "")
        if not name:
            return replace(element, text=text)
        if _key(text) == _key(name) or (text and _key(text) == _key(element.value)):
            return element
        if not _key(text):  # a picture or a symbol
            return element if text or not written else _renamed(element, "")
        rest = _key(name)
        for inside in self._document.nodes[at + 1 : self._document.ends[at]]:
            if _ROLES.get(_role(inside)) == "image":
                rest = rest.replace(_key(_name(inside)), "", 1)
        return element if rest == _key(text) else _renamed(element, text)

    def _element(self, node: Reply, *, clickable: bool = True, **fields: Any) -> Element:
        number = _number(node)
        listens = number in self._layout.listening and fields["role"] != "dialog"
        clickable = clickable or listens
        bounds = self._layout.bounds.get(number)
        return Element(index=0, bounds=bounds, clickable=clickable, **fields)


def _state(role: Role, node: Reply, owner: str) -> dict[str, Any]:
    """The fields of a control."""
    state = _property(node, "selected" if role == "option" else "checked")
    value = node.get("value", {}).get("value")
    value = whole(value) if isinstance(value, str) else value
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
    return fields | {"role": role}


def _renamed(element: Element, text: str) -> Element:
    """An element with the painted text, and its accessible name as the description."""
    owner = element.description if element.role == "option" else ""
    name = f"{owner} {element.text}".strip() or element.description
    return replace(element, text=text, description=name)


def _is_letter(letter: str) -> bool:
    """Whether a character says something: a letter, a digit or a symbol such as an emoji."""
    return letter.isalnum() or unicodedata.category(letter) == "So"


def _key(text: str | None) -> str:
    """A text without what may differ between its painted form and the tree's: case, spaces and
    marks. The keys of ``None`` and of marks alone are empty."""
    return "".join(filter(_is_letter, unicodedata.normalize("NFKC", text or "").casefold()))


def _counts(flags: Iterable[bool]) -> list[int]:
    return list(accumulate(flags, initial=0))


def _actable(node: Reply) -> bool:
    return not node.get("ignored") and _ROLES.get(_role(node)) in _ACTABLE


def _number(node: Reply) -> int:
    return int(node.get("backendDOMNodeId", -1))


def _role(node: Reply) -> str:
    return str(node.get("role", {}).get("value", ""))


def _text(node: Reply, key: str) -> str:
    return whole(" ".join(str(node.get(key, {}).get("value") or "").split())[:MOST_TEXT])


def _name(node: Reply) -> str:
    return _text(node, "name")


def _property(node: Reply, name: str) -> Any:
    found = (entry for entry in node.get("properties", ()) if entry["name"] == name)
    return next((entry["value"].get("value") for entry in found), None)
