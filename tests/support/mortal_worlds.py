"""Environments and policies for workers in other processes: they die, break or wait when told to.

Seeds tell them what to do; files in the folder of the environment variable ``MORTAL_FOLDER`` tell
the test what happened.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from swarm_ui import (
    Action,
    BudgetExceeded,
    CollabGraph,
    Completion,
    ConfigError,
    Element,
    Environment,
    Episode,
    GraphPolicy,
    Intervention,
    Observation,
    Request,
    Step,
    Trace,
)

DIES_ONCE, DIES_ALWAYS, WAITS, REFUSES, SPENDS, CRASHES = 1001, 1002, 1003, 1004, 1005, 1006
"""Seeds of episodes that are special."""


class MortalWorld:
    """Solved by as many clicks on element 0 as the seed says, up to 3; special seeds do more."""

    name = "mortal"
    tasks: Sequence[str] = ("count",)

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._seed = self._done = 0
        (self._folder / f"open-{os.getpid()}-{id(self)}").touch()

    async def reset(self, *, task: str, seed: int) -> Observation:
        self._seed, self._done = seed, 0
        if seed == REFUSES:
            raise ConfigError("no such task here")
        return self._look()

    def _look(self) -> Observation:
        elements = tuple(Element(index=i, role="button", text=f"{i}") for i in range(3))
        return Observation(goal=f"count to {self._seed}", app=str(self._done), elements=elements)

    async def step(self, action: Action) -> Step:
        self._done += action.index == 0
        if self._seed == DIES_ALWAYS or (self._seed == DIES_ONCE and self._first("died")):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._seed == CRASHES:
            raise ZeroDivisionError("a bug")
        if self._seed == WAITS:
            (self._folder / f"waiting-{os.getpid()}").touch()
            await asyncio.sleep(600)
        solved = self._done == 1 + self._seed % 3
        return Step(observation=self._look(), reward=float(solved), terminated=solved,
                    truncated=self._done > 5)  # fmt: skip

    def _first(self, name: str) -> bool:
        try:
            (self._folder / name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    async def close(self) -> None:
        (self._folder / f"open-{os.getpid()}-{id(self)}").unlink(missing_ok=True)


@asynccontextmanager
async def worlds_in(folder: str) -> AsyncIterator[Callable[[], Environment]]:
    """A function that makes worlds, while it is open."""
    yield partial(MortalWorld, folder)


class Spender:
    """A model that clicks on element 0; its budget is used up at some seeds."""

    name = "spender"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        text = "".join(str(request) for request in requests)
        if f"count to {SPENDS}" in text:
            raise BudgetExceeded("all calls are made")
        reply = '{"action_type": "click", "index": 0}'
        return [Completion(text=reply, prompt="p") for _ in requests]


def clicker() -> GraphPolicy:
    """One agent that is right."""
    return GraphPolicy(CollabGraph.solo(Spender()), name="clicker")


def timeless(episode: Episode) -> bytes:
    """An episode as bytes, timings aside."""
    steps = []
    for step in episode.steps:
        calls = tuple(replace(call, started=0.0, ended=0.0) for call in step.trace.calls)
        steps.append(replace(step, trace=replace(step.trace, calls=calls)))
    return msgspec.json.encode(replace(episode, steps=tuple(steps), seconds=0.0, notes=()))


async def scribe(index: int, trace: Trace, environment: Environment) -> Intervention | None:
    """Notes what the episode does not contain: the process that played it."""
    return Intervention(credit_source="scribe", note=(index, os.getpid()))
