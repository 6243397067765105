"""Pictures of records in notebooks.

A record does not import what draws it, since drawing imports the records. ``swarm_ui`` registers
here what draws each class; the record's ``_repr_svg_`` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_DRAWN: dict[type, tuple[Callable[[Any], str], Callable[[Any], str]]] = {}


def register(kind: type, svg: Callable[[Any], str], html: Callable[[Any], str]) -> None:
    """Draw records of a class by two functions: as SVG, and as HTML that may be wider."""
    _DRAWN[kind] = (svg, html)


def svg(record: object) -> str:
    return _DRAWN[type(record)][0](record)


def html(record: object) -> str:
    return _DRAWN[type(record)][1](record)
