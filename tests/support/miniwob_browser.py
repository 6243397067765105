"""What the MiniWoB++ tests share: a reason to skip, and how to talk to a page."""

from __future__ import annotations

import importlib.util

import pytest

from swarm_ui.action import Action
from swarm_ui.environments.miniwob import MiniWobEnvironment, find_browser
from swarm_ui.observation import Observation


def needs_browser() -> pytest.MarkDecorator:
    """Skips a module, with the reason, where real pages cannot be shown."""
    missing = [name for name in ("playwright", "miniwob") if importlib.util.find_spec(name) is None]
    if missing:
        return pytest.mark.skip(reason=f"not installed: {', '.join(missing)}")
    return pytest.mark.skipif(find_browser() is None, reason="no Chromium is installed")


def click(screen: Observation, label: str, role: str | None = None) -> Action:
    """Click on the only element (of that role) which is called so."""
    found = [e for e in screen.elements if e.label == label and role in (None, e.role)]
    assert len(found) == 1, (label, screen.elements)
    return Action(action_type="click", index=found[0].index, target=label)


async def script(env: MiniWobEnvironment, expression: str) -> object:
    """Value of a JavaScript expression on the page of ``env``."""
    assert env.page is not None
    return await env.page.page.evaluate(f"() => ({expression})")
