"""An episode that a person plays: actions, the outcome, and what the page shows."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from swarm_ui.action import ACTION_TYPES, Action
from swarm_ui.environment import Environment, checker_version
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure, TraceError
from swarm_ui.message import Message
from swarm_ui.node import derive
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.jsonl import Anywhere, append_jsonl
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

MARGIN = 10
"""Margin in pixels around the sketch of a screen without a screenshot."""
_ACTOR = "person"
_PNG = b"\x89PNG\r\n\x1a\n"


class PlaySession:
    """An episode that a person plays; start with :meth:`begin`.

    It is added to a JSON lines file when it ends. One that is left before its end, or that ends
    with a fault, has the reason in ``fault`` and ``success=None``.
    """

    def __init__(self, env: Environment, path: Anywhere | None) -> None:
        """
        Args:
            env: the environment.
            path: file to append to; its folder must exist. ``None``: no file is written.

        Raises:
            ConfigError: the folder does not exist.
            TraceError: the file cannot be written.
        """
        self._env, self._path = env, None if path is None else Path(path)
        if self._path is not None and not self._path.parent.is_dir():
            raise ConfigError(f"play: the folder of {path} does not exist; create it first")
        self._append()
        self._steps: list[StepRecord] = []
        self._task, self._seed, self._note, self._began = "", 0, "", 0.0
        self._screen = Observation(goal="", elements=())
        self.turn = 0
        """Number of the screen; an action for an older screen can be refused."""
        self.ended = False
        self.episode: Episode | None = None
        """The recorded episode; ``None`` if nothing was done or it has not ended."""

    async def begin(self, task: str, seed: int) -> None:
        self._task, self._seed, self._began = task, seed, time.monotonic()
        self._screen = await self._env.reset(task=task, seed=seed)

    async def act(self, action: Action) -> None:
        """Do one action. A fault ends the episode, and is written to its record."""
        record = StepRecord(trace=self._trace(action), executed=action)
        self.turn += 1
        try:
            step = await self._env.step(action)
        except EnvironmentFault as error:
            self._note = str(error)
            self._steps.append(record)
            self._end(self._note)
            return
        ends = {"terminated": step.terminated, "truncated": step.truncated}
        self._steps.append(replace(record, reward=step.reward, note=step.note, **ends))
        self._screen, self._note = step.observation, step.note
        if step.ended:
            self._end(step.fault)

    def leave(self) -> None:
        """Give up; the actions so far are kept as an episode without an outcome."""
        self.ended = True
        if self._steps:
            self._end("left before its end: given up")

    def _trace(self, action: Action) -> Trace:
        """The trace of a decision without a model: one actor, one message."""
        number = len(self._steps)
        message = Message(
            id=f"{_ACTOR}:0", sender=_ACTOR, round=0, content=action.json(), action=action
        )
        return Trace(
            run=f"{self._task}/{self._seed}/{number}",
            seed=derive(self._seed, "step", number),
            observation=self._screen,
            agents=(_ACTOR,),
            rounds=1,
            calls=(Call(message=message),),
            action=action,
        )

    def _end(self, fault: str | None) -> None:
        self.ended = True
        self.episode = Episode(
            environment=self._env.name,
            checker=checker_version(self._env),
            task=self._task,
            seed=self._seed,
            policy=_ACTOR,
            steps=tuple(self._steps),
            success=None if fault is not None else self._steps[-1].reward >= 1.0,
            fault=None if fault is None else Failure(kind="environment", message=fault),
            seconds=time.monotonic() - self._began,
        )
        self._append(self.episode)

    def _append(self, *episodes: Episode) -> None:
        if self._path is not None:
            try:
                append_jsonl(self._path, episodes)
            except OSError as error:
                raise TraceError(f"{self._path}: cannot be written: {error.strerror}") from error

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
            "steps": len(self._steps),
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
            "saved": str(self._path or ""),
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
        action = replace(action, target=past.label)
    return str(action)
