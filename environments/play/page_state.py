"""The state of the page as JSON: the screen and the possible actions."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from swarm_ui.action import ACTION_TYPES
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.observation import Observation

MARGIN = 10
"""Pixels around a sketch."""
_PNG = b"\x89PNG\r\n\x1a\n"


def state(session: PlaySession, *, task: str, path: str) -> bytes:
    """The state. It includes the picture, so that picture and elements belong together."""
    screen = session.screen
    width, height = size(screen)
    told: dict[str, Any] = {
        "turn": session.turn,
        "task": task,
        "goal": screen.goal,
        "app": screen.app,
        "elements": [
            {"label": element.label, **msgspec.to_builtins(element)} for element in screen.elements
        ],
        "actions": screen.actions or ACTION_TYPES,
        "history": [_told(session, at) for at in range(len(screen.history))],
        "picture": base64.b64encode(screen.png).decode() if screen.png else None,
        "width": width,
        "height": height,
        "note": session.note,
        "steps": session.steps,
        "undo": session.can_undo,
        "ended": session.ended,
    }
    if session.ended:
        episode = session.episode
        told["outcome"] = session.outcome()
        told["solved"] = episode is not None and episode.success is True
        told["saved"] = path if episode is not None else ""
    return msgspec.json.encode(told)


def size(screen: Observation) -> tuple[int, int]:
    """Width and height in pixels: of the picture, or of the box around all elements."""
    png = screen.png
    if png is not None and png.startswith(_PNG) and len(png) >= 24:
        return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    bounds = [element.bounds for element in screen.elements if element.bounds is not None]
    if not bounds:
        return 0, 0
    return max(b[2] for b in bounds) + MARGIN, max(b[3] for b in bounds) + MARGIN


def _told(session: PlaySession, at: int) -> str:
    past = session.screen.history[at]
    action = past.action
    if past.label and not action.target:
        action = msgspec.structs.replace(action, target=past.label)
    return str(action)
