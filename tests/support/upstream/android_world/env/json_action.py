"""As upstream's module."""

from __future__ import annotations

from typing import Any

KNOWN = frozenset({"action_type", "index", "x", "y", "text", "direction", "goal_status",
                   "app_name", "keycode", "clear_text"})  # fmt: skip


class JSONAction:
    """It accepts what upstream's accepts."""

    def __init__(self, **fields: Any) -> None:
        for name in fields.keys() - KNOWN:
            raise TypeError(f"JSONAction got an unexpected keyword argument '{name}'")
        self.fields = fields
