"""An episode that a person plays: actions, undo, the outcome, and what the page shows."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from swarm_ui.action import ACTION_TYPES, Action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.environments.wrappers import Recorder
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.jsonl import Anywhere
from swarm_ui.trace.records import Episode

MARGIN = 10
"""Margin in pixels around the sketch of a screen without a screenshot."""
_PNG = b"\x89PNG\r\n\x1a\n"


class PlaySession:
    """An episode that is being played; start with :meth:`begin`."""

    def __init__(self, env: Environment, path: Anywhere | None, actor: str) -> None:
        self._world = Recorder(env, path, actor=actor)
        self._path = str(path or "")
        self._before: list[object] = []
        self._task, self._note, self._steps = "", "", 0
        self._screen = Observation(goal="", elements=())
        self.turn = 0
        """Number of the screen; an action for an older screen can be refused."""
        self.ended = False

    @property
    def episode(self) -> Episode | None:
        """The recorded episode; ``None`` if nothing was done or it has not ended."""
        return self._world.last

    async def begin(self, task: str, seed: int) -> None:
        self._task = task
        self._screen = await self._world.reset(task=task, seed=seed)

    async def act(self, action: Action) -> None:
        """Do one action. A fault ends the episode, and is written to its record."""
        before = [self._world.snapshot()] if isinstance(self._world, Restorable) else []
        self.turn += 1
        self._steps += 1
        try:
            step = await self._world.step(action)
        except EnvironmentFault as error:
            self._note, self.ended = str(error), True
            return
        self._before += before
        self._screen, self._note, self.ended = step.observation, step.note, step.ended

    def undo(self) -> bool:
        """Undo the last action, also in the record; false if that is not possible."""
        if not self._before or self.ended or not isinstance(self._world, Restorable):
            return False
        self._screen = self._world.restore(self._before.pop())
        self.turn += 1
        self._steps -= 1
        self._note = ""
        return True

    def leave(self) -> None:
        """Give up; the actions so far are kept as an episode without an outcome."""
        self._world.leave("given up")
        self.ended = True

    def shown(self) -> dict[str, Any]:
        """What the page shows, with the picture, so that it belongs to the elements."""
        screen = self._screen
        width, height = _size(screen)
        told = {
            "turn": self.turn,
            "task": self._task,
            "goal": screen.goal,
            "app": screen.app,
            "elements": [{"label": e.label, **msgspec.to_builtins(e)} for e in screen.elements],
            "actions": screen.actions or ACTION_TYPES,
            "history": [_told(past) for past in screen.history],
            "picture": base64.b64encode(screen.png).decode() if screen.png else None,
            "width": width,
            "height": height,
            "note": self._note,
            "steps": self._steps,
            "undo": bool(self._before) and not self.ended,
            "ended": self.ended,
        }
        return told | self._outcome() if self.ended else told

    def _outcome(self) -> dict[str, Any]:
        episode = self.episode
        if episode is None:
            return {"outcome": "nothing was done", "solved": False, "saved": ""}
        steps = f"{len(episode.steps)} step{'' if len(episode.steps) == 1 else 's'}"
        outcome = f"solved in {steps}" if episode.success else f"not solved, {steps}"
        return {
            "outcome": outcome if episode.fault is None else str(episode.fault),
            "solved": episode.success is True,
            "saved": self._path,
        }


def _size(screen: Observation) -> tuple[int, int]:
    """Width and height in pixels: of the picture, or of the box around all elements."""
    png = screen.png
    if png is not None and png.startswith(_PNG) and len(png) >= 24:
        return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    bounds = [element.bounds for element in screen.elements if element.bounds is not None]
    if not bounds:
        return 0, 0
    return max(b[2] for b in bounds) + MARGIN, max(b[3] for b in bounds) + MARGIN


def _told(past: Past) -> str:
    action = past.action
    if past.label and not action.target:
        action = msgspec.structs.replace(action, target=past.label)
    return str(action)
