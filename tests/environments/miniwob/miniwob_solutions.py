"""Which scripted solution solves which MiniWoB++ task, and playing them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import iscoroutinefunction

import miniwob_forms as forms
import miniwob_mouse as hand
from miniwob_player import Player

from swarm_ui.environments.miniwob import MiniWobEnvironment

Solution = Callable[[Player], Awaitable[None]]

_SAME: Mapping[str, str] = {
    **dict.fromkeys(
        ("choose-date-easy", "choose-date-medium", "choose-date-nodelay"), "choose-date"
    ),
    "click-checkboxes-large": "click-checkboxes",
    "click-checkboxes-transfer": "click-checkboxes",
    "click-collapsible-nodelay": "click-collapsible",
    "click-tab-2-easy": "click-tab-2",
    "click-test-transfer": "click-test-2",
    "drag-single-shape": "drag-circle",
    "enter-text-dynamic": "enter-text",
    "focus-text-2": "focus-text",
    "highlight-text-2": "highlight-text",
    "login-user-popup": "login-user",
    "multi-orderings": "multi-layouts",
    "read-table-2": "read-table",
    "unicode-test": "click-button",
    "use-autocomplete-nodelay": "use-autocomplete",
}
"""Tasks that are solved like another one."""
_SCRIPTS: Mapping[str, Solution] = {
    name.replace("_", "-"): script
    for module in (forms, hand)
    for name, script in vars(module).items()
    if iscoroutinefunction(script) and not name.startswith("_")
}
SOLUTIONS: Mapping[str, Solution] = dict(
    sorted((_SCRIPTS | {task: _SCRIPTS[like] for task, like in _SAME.items()}).items())
)
"""The script of each task that has one; a script has the name of its task."""
LONG = frozenset({"hot-cold", "use-slider", "use-slider-2", "form-sequence"})
"""Tasks of many steps."""
SEEDS: Mapping[str, tuple[int, ...]] = {
    "drag-items-grid": (0, 1, 2, 3, 4, 5, 7, 8, 9, 10),  # 6: a diagonal over other places
    "text-editor": (0, 1, 2, 5),  # a style for everything
}
"""Of a task whose solution is for some goals only."""


def rounds(tasks: Iterable[str], seeds: Iterable[int]) -> list[tuple[str, int]]:
    """The episodes to play: each task with each seed that its solution is for."""
    wanted = list(seeds)
    return [
        (task, seed)
        for task in tasks
        for seed in (SEEDS[task][: len(wanted)] if task in SEEDS else wanted)
    ]


async def solve(env: MiniWobEnvironment, task: str, seed: int) -> Player:
    """One episode, solved as far as its script can."""
    player = Player(env, await env.reset(task=task, seed=seed))
    await SOLUTIONS[task](player)
    return player
