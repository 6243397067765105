"""Accessibility forests as android-env's messages have them, for tests without android-env."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

_IDS = count(1)
_TEXTS = ("text", "content_description", "hint_text", "package_name", "view_id_resource_name")
_FLAGS = ("clickable", "long_clickable", "checkable", "checked", "editable", "focused",
          "scrollable", "selected")  # fmt: skip
Box = tuple[int, int, int, int]


class Node:
    """A node with its children. Keywords are the message's fields; flags are without ``is_``."""

    def __init__(self, kind: str, box: Box, *children: Node, **fields: Any) -> None:
        self.children = children
        flags = {f"is_{flag}": fields.pop(flag, False) for flag in _FLAGS}
        left, top, right, bottom = box
        self.message = SimpleNamespace(
            **{**dict.fromkeys(_TEXTS, ""), **flags, "is_enabled": True, "labeled_by_id": 0,
               "is_visible_to_user": True, "actions": (), **fields},
            class_name=f"android.widget.{kind}",
            unique_id=next(_IDS),
            child_ids=[child.message.unique_id for child in children],
            bounds_in_screen=SimpleNamespace(left=left, top=top, right=right, bottom=bottom),
        )  # fmt: skip

    def walk(self) -> list[Any]:
        return [self.message, *(one for child in self.children for one in child.walk())]


def window(root: Node, *, title: str = "", kind: int = 1, active: bool = True) -> Any:
    return SimpleNamespace(title=title, window_type=kind, is_active=active, is_focused=active,
                           tree=SimpleNamespace(nodes=root.walk()))  # fmt: skip


def forest(*windows: Any) -> Any:
    return SimpleNamespace(windows=windows)
