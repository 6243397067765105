"""Addresses of screens."""

from __future__ import annotations

from typing import NamedTuple


class Screen(NamedTuple):
    """Address of a screen: equal addresses show the same place."""

    app: str
    kind: str = "list"
    of: str = ""
    """Table or category shown, where the app has several."""
    row: int = 0
    """Identity of the record shown; 0 where there is none."""


Path = tuple[Screen, ...]
"""Screens from an app's first screen to the current one; empty on the home screen."""
