"""HTML and SVG as text. Every value is escaped."""

from __future__ import annotations

import html

from swarm_ui.viz.svg_text import xml_safe

Attribute = str | int | float


class Markup(str):
    """A text that is HTML already and must not be escaped. :func:`tag` escapes all other texts."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: Attribute | None) -> Markup:
    """An HTML element. Children that are not :class:`Markup` are escaped, and so are attributes.

    ``class_`` is written ``class``, and ``aria_label`` is written ``aria-label``; ``None`` is left
    out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """The children, one after the other. Children that are not markup are escaped."""
    return Markup("".join(c if isinstance(c, Markup) else escape(c) for c in children))


def note(text: str) -> Markup:
    """Small print below a figure or table; nothing for an empty text."""
    return tag("p", text, class_="note") if text else Markup("")


def escape(text: str) -> str:
    """Text, escaped for HTML and for quoted attributes."""
    return html.escape(xml_safe(text), quote=True)


def _attribute(value: Attribute) -> str:
    return escape(
        f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    )
