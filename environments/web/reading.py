"""Reads the elements that a tab shows from the browser's accessibility tree and layout.

Both come from the browser, not from a script in the page. The tree gives the roles, states and
names of elements, the layout the text that is painted. A page can choose the names and leave
elements out of the tree (``aria-label``, ``aria-hidden``), so what is painted decides: invisible
elements are left out, visible ones that the tree does not have are added, and where the painted
text differs from the name, it is the text and the name the description. Frames and shadow roots,
open or closed, are part of the page.
"""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from swarm_ui.environments.web.browser import Rejected, Reply, Tab, whole
from swarm_ui.environments.web.css import STYLES
from swarm_ui.environments.web.painting import Frame, canvas
from swarm_ui.observation import Element, Role

MOST_ELEMENTS = 200
MOST_TEXT = 500
"""Maximum number of characters of a label or a value."""
MOST_CARD = 200
"""Maximum number of characters of a clickable node without a role that becomes one element."""

ROLES: dict[str, Role] = {
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
_TAGS: dict[str, Role] = {"BUTTON": "button", "A": "link", "INPUT": "field", "TEXTAREA": "area",
                          "OPTION": "option"}  # fmt: skip
"""Roles of controls that the accessibility tree leaves out."""
_INPUTS: dict[str, Role] = {
    "submit": "button", "button": "button", "reset": "button", "image": "button", "checkbox":
    "checkbox", "radio": "radio",
}  # fmt: skip
ACTABLE = frozenset({"button", "link", "field", "area", "checkbox", "radio", "switch", "option",
                      "item", "tab"})  # fmt: skip
WHOLE = ACTABLE | {"heading", "image"}
"""Roles of elements that contain the text inside them."""
FILE = "path of a file"
"""The hint of a field that takes a file."""
_TYPED = ("field", "area")
_WHOLE_PAGE = ("HTML", "BODY", "#document")
_LABELLED = frozenset({"INPUT", "SELECT", "TEXTAREA", "METER", "PROGRESS"})


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
    told = await tab.call(
        "DOMSnapshot.captureSnapshot",
        computedStyles=STYLES,
        includePaintOrder=True,
        includeDOMRects=True,
    )
    words = [whole(word) for word in told["strings"]]
    page = Frame(told["documents"], words, canvas(size[1]))
    names = [words[document["frameId"]] for document in told["documents"]]
    trees = {names[0]: await _tree(tab, names[0])}
    for name in names[1:]:
        with contextlib.suppress(Rejected):  # a frame that was removed meanwhile
            trees[name] = await _tree(tab, name)
    found = list(_Reader(page, trees).listed())
    sides = [_side(element, size[1]) for element, _ in found]
    near = [one for one, side in zip(found, sides, strict=True) if side == 0]
    return Seen(
        tuple(element for element, _ in near[:MOST_ELEMENTS]),
        tuple(number for _, number in near[:MOST_ELEMENTS]),
        page.title,
        sides.count(-1),
        sides.count(1) + len(near[MOST_ELEMENTS:]),
    )


def _side(element: Element, height: int) -> int:
    """-1: far above the window, 1: far below it, 0: in it or near."""
    _, top, _, bottom = element.bounds or (0, 0, 0, 0)
    return -1 if bottom < -height / 2 else 1 if top > 1.5 * height else 0


Tree = Mapping[int, Reply]
"""The :func:`facts` of an accessibility tree's nodes, by the browser's numbers."""


async def _tree(tab: Tab, frame: str) -> Tree:
    nodes = (await tab.call("Accessibility.getFullAXTree", frameId=frame))["nodes"]
    return {node.get("backendDOMNodeId", -1): facts(node) for node in nodes if not node["ignored"]}


def facts(node: Reply) -> Reply:
    """Role, name, description, value (``None``: it has none) and properties of a node of an
    accessibility tree."""
    told = {one["name"]: one["value"].get("value") for one in node.get("properties", ())}
    for key in ("role", "name", "description"):
        given = str(node.get(key, {}).get("value") or "")
        told[key] = whole(" ".join(given.split())[:MOST_TEXT])
    value = node.get("value", {}).get("value")
    return told | {"value": None if value is None else whole(str(value))[:MOST_TEXT]}


class _Reader:
    """Lists what is visible in a frame."""

    def __init__(self, frame: Frame, trees: Mapping[str, Tree]) -> None:
        self._frame, self._trees = frame, trees
        self._nodes = [trees.get(frame.id, {}).get(number, {}) for number in frame.numbers]
        self._roles = [self._role(place) for place in range(len(frame.tags))]
        labels = (place for place, tag in enumerate(frame.tags) if tag == "LABEL")
        self._labels = {frame.attribute(label, "for"): label for label in labels}
        shown = (k for k, role in enumerate(self._roles) if role in ACTABLE and self._offers(k))
        self._keys = {_key(self._nodes[place].get("name")) for place in shown} - {""}

    def listed(self) -> Iterator[tuple[Element, int]]:
        """The visible elements, also those of inner frames, with the numbers of their nodes."""
        frame, place, owners = self._frame, 0, [("", len(self._roles))]
        while place < len(self._roles):
            at, place = place, place + 1
            while at >= owners[-1][1]:
                owners.pop()
            if at in frame.inner:
                place = frame.ends[at]
                if frame.shows(at):
                    yield from _Reader(frame.inner[at], self._trees).listed()
            elif self._is_list(at):
                if self._offers(at):  # its options are listed by its name
                    name = self._nodes[at].get("name") or owners[-1][0]
                    owners.append((name, frame.ends[at]))
                else:
                    place = frame.ends[at]
            elif (role := self._roles[at] or self._card(at)) is not None:
                whole = role in WHOLE and not self._has_control(at)
                place = frame.ends[at] if whole else place
                element = self._element(at, role, owners[-1][0], whole=whole)
                if element is not None:
                    yield element, frame.numbers[at]
            elif (text := self._plain(at)) is not None:
                yield text, frame.numbers[at]

    def _role(self, place: int) -> Role | None:
        frame, node, tag = self._frame, self._nodes[place], self._frame.tags[place]
        if not node:
            kind = frame.attribute(place, "type").lower() if tag == "INPUT" else ""
            return _INPUTS.get(kind, _TAGS.get(tag))
        if self._takes_file(place):
            return "field"
        editable = node.get("editable")
        if node["role"] == "combobox" and not editable:
            return "button"
        if editable and node.get("focusable"):  # "richtext": such as the text of an editor
            return "area" if editable == "richtext" or node.get("multiline") is True else "field"
        return ROLES.get(node["role"])

    def _takes_file(self, place: int) -> bool:
        is_input = self._frame.tags[place] == "INPUT"
        return is_input and self._frame.attribute(place, "type").lower() == "file"

    def _card(self, place: int) -> Role | None:
        """The role of a node without one that is pressed as a whole, such as a card or a tile."""
        frame = self._frame
        if place not in frame.listening and not frame.points(place):
            return None
        inside = range(place + 1, frame.ends[place])
        if frame.tags[place] in _WHOLE_PAGE or any(
            one in frame.listening or self._roles[one] in ACTABLE for one in inside
        ):
            return None
        text = frame.text(place)
        of_control = frame.tags[place] == "LABEL" and _key(text) in self._keys
        return None if of_control or len(text) > MOST_CARD else "item"

    def _is_list(self, place: int) -> bool:
        """Whether a list of choices has its options inside it. The options of a combobox that a
        page makes itself may be elsewhere; it opens them when it is pressed."""
        node = self._nodes[place]
        role = "" if node.get("editable") else node.get("role")
        return role == "listbox" or (role == "combobox" and self._has_control(place))

    def _has_control(self, place: int) -> bool:
        """Whether there is a control inside a node."""
        return any(role in ACTABLE for role in self._roles[place + 1 : self._frame.ends[place]])

    def _offers(self, place: int, *, filled: bool = False) -> bool:
        """Whether an element is visible, or a field that only its label shows."""
        frame = self._frame
        if frame.shows(place, filled=filled):
            return True
        if frame.tags[place] == "OPTION":
            lists = (one for one in frame.around(place) if frame.tags[one] == "SELECT")
            return any(map(self._offers, lists))
        if frame.tags[place] not in _LABELLED:
            return False
        labels = [one for one in frame.around(place) if frame.tags[one] == "LABEL"]
        if (id := frame.attribute(place, "id")) in self._labels and id:
            labels.append(self._labels[id])
        return any(map(frame.text, labels))

    def _plain(self, place: int) -> Element | None:
        """The element of a text that is not part of another one."""
        frame = self._frame
        text = frame.text(place) if place in frame.texts else ""
        if not any(map(_is_letter, text)):
            return None
        labels = (one for one in frame.around(place) if frame.tags[one] == "LABEL")
        if any({_key(text), _key(frame.text(one))} & self._keys for one in labels):
            return None  # the text of a label is listed with its control
        bounds = frame.bounds(place)
        return Element(role="text", text=text[:MOST_TEXT], bounds=bounds, clickable=False)

    def _element(self, place: int, role: Role, owner: str, *, whole: bool) -> Element | None:
        """The element of a node; ``None`` if it is invisible.

        Args:
            place: the node.
            role: that of the element.
            owner: the name of the list that an option belongs to.
            whole: whether everything in the node belongs to the element.
        """
        frame, node, tag = self._frame, self._nodes[place], self._frame.tags[place]
        state = self._state(place, role)
        keyed = state.get("editable") and state.get("focused")  # what is typed goes there
        shown = frame.option(place) if tag == "OPTION" else frame.text(place)[:MOST_TEXT]
        written = frame.written(place)
        if not (shown or keyed or self._offers(place, filled=written)):
            return None
        text = name = node.get("name", "")
        description = owner if role == "option" else node.get("description", "")
        if not (role in _TYPED or self._says(place, shown, state, whole=whole)):
            text = shown if whole or not name else ""
            if name:
                description = f"{description if role == 'option' else ''} {name}".strip()
        if role == "button" and not name and "value" in state:  # a list without a name
            text = state.pop("value")
        told = {"text": text, "description": description, **state}
        if self._takes_file(place):
            told["hint"] = FILE
        return Element(role=role, bounds=frame.bounds(place), **told)

    def _says(self, place: int, shown: str, state: Mapping[str, Any], *, whole: bool) -> bool:
        """Whether the name of an element says what is painted."""
        name, key = _key(self._nodes[place].get("name")), _key(shown)
        if not name or not whole:
            return bool(name) and name in key
        if not key:  # a picture or a symbol
            return bool(shown) or not self._frame.written(place)
        for inside in range(place + 1, self._frame.ends[place]):
            if self._roles[inside] == "image":
                name = name.replace(_key(self._nodes[inside].get("name")), "", 1)
        return key in (name, _key(state.get("value")))

    def _state(self, place: int, role: Role) -> dict[str, Any]:
        """The fields of an element other than its texts."""
        frame, node = self._frame, self._nodes[place]
        if not node:  # not in the accessibility tree: hidden, or inert, when it cannot be pressed
            hidden = (frame.attribute(one, "aria-hidden") for one in frame.around(place))
            acts = "true" in hidden
            fields: dict[str, Any] = {"clickable": acts}
            if role in _TYPED:
                fields |= {"value": frame.inputs.get(place, "")[:MOST_TEXT], "editable": acts}
            elif role in ("checkbox", "radio"):
                fields["checked"] = place in frame.ticked
            return fields
        checked, value = node.get("selected" if role == "option" else "checked"), node["value"]
        listens = place in frame.listening and role != "dialog"
        fields = {
            "enabled": node.get("disabled") is not True,
            "focused": node.get("focused") is True,
            "checked": None if checked is None else checked in (True, "true"),
            "clickable": role in ACTABLE or listens,
        }
        if role in _TYPED:
            fields |= {"value": value or "", "editable": node.get("readonly") is not True}
        elif value is not None and (role == "text" or node["role"] == "combobox"):
            fields["value"] = value
        elif role in ("tab", "item"):
            fields["selected"] = node.get("selected") or None
        return fields


def _is_letter(letter: str) -> bool:
    """Whether a character says something: a letter, a digit or a symbol such as an emoji."""
    return letter.isalnum() or unicodedata.category(letter) == "So"


def _key(text: str | None) -> str:
    """A text without what may differ between its painted form and the tree's: case, spaces and
    marks. The keys of ``None`` and of marks alone are empty."""
    return "".join(filter(_is_letter, unicodedata.normalize("NFKC", text or "").casefold()))
