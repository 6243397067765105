"""Starts of MiniWoB++ pages and rewards of scripted replies, as ``pages.json`` records them.

``python tests/golden/pages.py`` records again. A start is its goal, its fields, its elements and
the digest of their bounds; the bounds depend on the browser's build and on the fonts.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

sys.path.append(str(Path(__file__).parents[1] / "environments" / "miniwob"))
sys.path.append(str(Path(__file__).parents[1] / "support"))

from miniwob_browser import fields
from miniwob_solutions import LONG, SOLUTIONS, rounds, solve

from swarm_ui.environments.miniwob import (
    MiniWobBrowser,
    MiniWobEnvironment,
    all_html_tasks,
    find_browser,
)
from swarm_ui.observation import Observation

FILE = Path(__file__).with_name("pages.json")
PAGES = 4
UNSTEADY = frozenset({"stock-market", "drag-cube", "click-pie", "click-pie-nodelay", "chase-circle",
                      "moving-items", "simon-says"})  # fmt: skip
"""Pages that move in real time."""


def starts() -> list[tuple[str, int]]:
    """120 starts: two of each page with a short solution, and one of other pages."""
    scripted = [task for task in SOLUTIONS if task not in LONG | UNSTEADY]
    played = rounds(scripted[:45], range(2)) + rounds(scripted[45:], range(1))
    other = [task for task in all_html_tasks() if task not in SOLUTIONS and task not in UNSTEADY]
    return (played + [(task, 3) for task in other])[:120]


async def start(env: MiniWobEnvironment, screen: Observation) -> dict[str, Any]:
    elements = msgspec.to_builtins(screen.elements)
    bounds = [element.pop("bounds", None) for element in elements]
    for place, element in enumerate(elements):  # the page "terminal" shows the date of today
        if element.get("text", "").startswith("Last login: "):
            element["text"], bounds[place] = "Last login: today", None
    return {
        "goal": screen.goal,
        "fields": await fields(env, screen.goal),
        "elements": elements,
        "more": screen.more,
        "geometry": screen.geometry,
        "bounds": hashlib.sha256(json.dumps(bounds).encode()).hexdigest()[:12],
    }


async def record(chosen: Sequence[tuple[str, int]]) -> Mapping[str, Any]:
    """The chosen starts by name, with the raw reward of the scripted reply if there is one."""
    waiting = deque(dict.fromkeys(task for task, _ in chosen))
    found: dict[str, Any] = {}

    async def play(env: MiniWobEnvironment) -> None:
        while waiting:
            task = waiting.popleft()
            for seed in (seed for name, seed in chosen if name == task):
                told = await start(env, await env.reset(task=task, seed=seed))
                if task in SOLUTIONS:
                    await solve(env, task, seed)
                    told["reward"] = env.raw_reward
                found[f"{task} {seed}"] = told

    async with MiniWobBrowser(pages=PAGES, budget=400) as browser:
        await asyncio.gather(*map(play, browser.environments))
    return dict(sorted(found.items()))


def browser_version() -> str:
    """The build of the browser; bounds are compared on the same one."""
    told = subprocess.run([str(find_browser()), "--version"], capture_output=True, text=True)
    return told.stdout.strip()


if __name__ == "__main__":
    made = {"browser": browser_version(), "starts": asyncio.run(record(starts()))}
    FILE.write_text(json.dumps(made, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
