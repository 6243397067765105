"""Roles and texts of the elements on a recorded web page."""

from __future__ import annotations

from swarm_ui.observation import Role

_ARIA: dict[str, Role] = {
    "button": "button", "link": "link", "checkbox": "checkbox", "radio": "radio", "tab": "tab",
    "switch": "switch", "option": "option", "menuitem": "item", "menuitemradio": "item",
    "listitem": "item", "treeitem": "item", "textbox": "field", "searchbox": "field",
    "combobox": "field", "spinbutton": "field", "heading": "heading", "dialog": "dialog",
    "img": "image", "cell": "cell", "gridcell": "cell", "columnheader": "cell",
    "rowheader": "cell",
}  # fmt: skip
_TAGS: dict[str, Role] = {
    "a": "link", "button": "button", "summary": "button", "select": "field", "textarea": "area",
    "option": "option", "label": "label", "legend": "label", "li": "item", "td": "cell",
    "th": "cell", "img": "image", "dialog": "dialog", "svg": "icon", "i": "icon", "path": "icon",
    "use": "icon", "rect": "shape", "circle": "shape", "polygon": "shape", "line": "shape",
    "h1": "heading", "h2": "heading", "h3": "heading", "h4": "heading", "h5": "heading",
    "h6": "heading",
}  # fmt: skip
_INPUTS: dict[str, Role] = {
    "checkbox": "checkbox", "radio": "radio", "submit": "button", "button": "button",
    "reset": "button", "image": "button",
}  # fmt: skip


def role_of(tag: str, *, kind: str = "", aria: str = "") -> Role:
    """Role of an element.

    Args:
        tag: HTML tag in lower case, or a role name of Mind2Web's ``action_reprs``.
        kind: the ``type`` of an input.
        aria: ARIA role. It has precedence over the tag, except for an input.
    """
    if tag == "input":
        return _INPUTS.get(kind.lower(), "field")
    return _ARIA.get(aria.lower()) or _TAGS.get(tag) or _ARIA.get(tag, "text")


def first_words(text: str, words: int) -> str:
    """The first words of a text, with an ellipsis if there are more."""
    parts = text.split()
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")
