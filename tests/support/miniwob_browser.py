"""What the MiniWoB++ tests share: a reason to skip, and how to talk to a page."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

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


async def fields(env: MiniWobEnvironment, goal: str) -> dict[str, str]:
    """The parts of a goal, such as ``month``: what the page tells, or what upstream reads."""
    assert env.page is not None and env.page.task is not None
    told: Any = await script(env, "core.getUtterance().fields ?? null")
    return dict(_extractors()[env.page.task](goal) if told is None else told)


@cache
def _extractors() -> Any:
    """Upstream's functions that read the fields of a goal, by task. Only one module of the wheel
    is loaded, because the others need more packages."""
    (folder,) = importlib.util.find_spec("miniwob").submodule_search_locations  # type: ignore[union-attr]
    spec = importlib.util.spec_from_file_location("miniwob_fields", Path(folder) / "fields.py")
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module.FIELD_EXTRACTORS
