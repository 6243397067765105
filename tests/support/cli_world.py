"""A lamp with two buttons, for commands: quick, and it breaks or dawdles when told to."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from swarm_ui.__main__ import main
from swarm_ui.action import Action
from swarm_ui.cli.app import app
from swarm_ui.environment import Step
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Element, Observation

LAMP, SLOW, BROKEN = "cli_world:Lamp", "cli_world:SlowLamp", "cli_world:BrokenLamp"
EASY, DEAD = "cli_world:EasyLamp", "cli_world:DeadLamp"
RIGHT = 'Action: {"action_type": "click", "target": "on", "index": 0}'
WRONG = 'Action: {"action_type": "click", "target": "off", "index": 1}'


class Lamp:
    """Solved by a click on "on"; a click on anything else ends the episode too."""

    name = "lamp"
    tasks: Sequence[str] = ("light", "glow")

    async def reset(self, *, task: str, seed: int) -> Observation:
        elements = (
            Element(index=0, role="button", text="on"),
            Element(index=1, role="button", text="off"),
        )
        self._screen = Observation(goal=f"{task} <b>{seed}</b>", elements=elements, app="lamp")
        return self._screen

    async def step(self, action: Action) -> Step:
        won = action.action_type == "click" and action.index == 0
        return Step(observation=self._screen, reward=float(won), terminated=True)

    async def close(self) -> None:
        """Nothing to free."""


class SlowLamp(Lamp):
    """Takes its time, and so can be interrupted."""

    async def step(self, action: Action) -> Step:
        await asyncio.sleep(float(os.environ.get("LAMP_SECONDS", "0")))
        return await super().step(action)


class EasyLamp(Lamp):
    """Solved by any action."""

    async def step(self, action: Action) -> Step:
        return Step(observation=self._screen, reward=1.0, terminated=True)


class DeadLamp(Lamp):
    """Solved by no action."""

    async def step(self, action: Action) -> Step:
        return Step(observation=self._screen, reward=0.0, terminated=True)


class BrokenLamp(Lamp):
    """Breaks in every episode."""

    async def step(self, action: Action) -> Step:
        raise EnvironmentFault("the bulb is gone")


_built = functools.cache(typer.main.get_command)
"""Builds the tree of commands once in a process: typer does it in each call, in 0.06 seconds."""


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as the one JSON object that it must be."""
        found: dict[str, Any] = json.loads(self.out)
        return found


class Shell:
    """Types commands, in an empty folder."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.folder, self._capsys = folder, capsys
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        patch.setattr(typer.main, "get_command", _built)
        (folder / "right.txt").write_text(RIGHT + "\n", encoding="utf-8")
        (folder / "wrong.txt").write_text(WRONG + "\n", encoding="utf-8")
        (folder / "mixed.txt").write_text(f"{RIGHT}\n{WRONG}\n", encoding="utf-8")

    def __call__(self, line: str, *more: str) -> Done:
        """A command by its words, without quoting; ``more``: words with spaces."""
        self._capsys.readouterr()
        code = main([*line.split(), *more])
        told = self._capsys.readouterr()
        return Done(code, told.out, told.err)


def commands() -> dict[str, Any]:
    """Every command by name (``"models pull"`` in a group), as typer made it."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found |= {f"{name} {part}": each for part, each in (inner or {}).items()}
        if inner is None:
            found[name] = command
    return found
