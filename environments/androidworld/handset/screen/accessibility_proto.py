"""The accessibility tree as android-env's messages.

Importing this module needs the extra ``android``.
"""

from __future__ import annotations

from typing import Any

from android_env.proto.a11y import android_accessibility_forest_pb2 as forest_pb2
from android_env.proto.a11y import android_accessibility_window_info_pb2 as window_pb2

from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.screen.accessibility_tree import (
    FLAGS,
    Node,
    windows,
)
from swarm_ui.environments.androidworld.handset.screen.geometry import lay_out


def accessibility_forest(handset: Handset) -> Any:
    """``AndroidAccessibilityForest`` with the window of the app and the status bar."""
    app, status = windows(handset, lay_out(handset))
    message = forest_pb2.AndroidAccessibilityForest()
    kinds = window_pb2.AndroidAccessibilityWindowInfo.WindowType
    for number, (root, kind) in enumerate(
        ((app, kinds.TYPE_APPLICATION), (status, kinds.TYPE_SYSTEM)), start=1
    ):
        window = message.windows.add()
        window.id = number
        window.layer = number
        window.window_type = kind
        window.is_active = window.is_focused = number == 1
        _bounds(window.bounds_in_screen, root)
        _add(window.tree, root, 0, number)
    return message


def _add(tree: Any, node: Node, depth: int, window: int) -> int:
    """Append a node and its descendants. Returns the number of the node."""
    number = len(tree.nodes)
    info = tree.nodes.add()
    info.unique_id = number
    info.window_id = window
    info.depth = depth
    info.class_name = node.class_name
    info.package_name = node.package
    info.text = node.text
    info.content_description = node.description
    info.hint_text = node.hint
    info.view_id_resource_name = node.resource
    for flag in FLAGS:
        setattr(info, f"is_{flag}", getattr(node, flag))
    info.is_enabled = info.is_visible_to_user = True
    _bounds(info.bounds_in_screen, node)
    children = [_add(tree, child, depth + 1, window) for child in node.children]
    tree.nodes[number].child_ids.extend(children)
    return number


def _bounds(message: Any, node: Node) -> None:
    message.left, message.top, message.right, message.bottom = node.box
