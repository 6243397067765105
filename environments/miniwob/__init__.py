"""MiniWoB++: the pages of the ``miniwob`` wheel in a real Chromium, many pages per browser."""

from __future__ import annotations

from swarm_ui.environments.miniwob.environment import MiniWobBrowser, MiniWobEnvironment
from swarm_ui.environments.miniwob.tasks import (
    PRACTICE_TASKS,
    REFERENCE_TASKS,
    all_html_tasks,
    blind_tasks,
)
from swarm_ui.environments.web.browser import find_browser

__all__ = [
    "PRACTICE_TASKS",
    "REFERENCE_TASKS",
    "MiniWobBrowser",
    "MiniWobEnvironment",
    "all_html_tasks",
    "blind_tasks",
    "find_browser",
]
