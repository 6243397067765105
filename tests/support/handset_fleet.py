"""The simulated handset as an environment without upstream's package, for many at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from swarm_ui import Action, CollabGraph, Completion, Element, GraphPolicy, Observation, Step
from swarm_ui.environments.androidworld.handset import APPS, Handset
from swarm_ui.environments.androidworld.handset.screen.geometry import lay_out
from swarm_ui.environments.androidworld.handset.screen.touch import tap
from swarm_ui.model import Request

PATH = ("settings", "network", "wifi")
"""What is touched to switch Wi-Fi."""


class HandsetWorld:
    """Switch Wi-Fi. The first episode of each handset waits until there is a fleet."""

    name = "handset (simulated)"
    tasks: Sequence[str] = ("wifi",)

    def __init__(self, folder: str, fleet: int) -> None:
        self._folder, self._fleet = Path(folder), fleet
        (self._folder / f"handset-{uuid4().hex}").touch()

    async def reset(self, *, task: str, seed: int) -> Observation:
        while len(list(self._folder.glob("handset-*"))) < self._fleet:
            await asyncio.sleep(0.1)
        self._handset, self._steps = Handset(APPS), 0
        self._before = self._handset.settings["wifi"]
        return self._look()

    def _look(self) -> Observation:
        elements = []
        for index, one in enumerate(lay_out(self._handset).placed):
            text = one.widget.text or one.widget.description
            elements.append(Element(index=index, role="button", text=text, value=one.widget.value))
        return Observation(goal="switch Wi-Fi", elements=tuple(elements))

    async def step(self, action: Action) -> Step:
        self._steps += 1
        if action.index is not None:
            left, top, right, bottom = lay_out(self._handset).placed[action.index].pixels
            tap(self._handset, (left + right) / 2, (top + bottom) / 2)
        solved = self._handset.settings["wifi"] != self._before
        return Step(observation=self._look(), reward=float(solved), terminated=solved,
                    truncated=self._steps >= 5)  # fmt: skip

    async def close(self) -> None:
        """Nothing to free."""


class Toucher:
    """A model that touches what leads to the switch."""

    name = "toucher"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return [Completion(text=json.dumps(self._next(r)), prompt="p") for r in requests]

    def _next(self, request: Request) -> dict[str, object]:
        assert request.decision is not None
        shown = request.decision.observation.elements
        for label in reversed(PATH):
            for element in shown:
                if label in (element.text, element.value):
                    return {"action_type": "click", "index": element.index}
        return {"action_type": "wait"}


def toucher() -> GraphPolicy:
    return GraphPolicy(CollabGraph.solo(Toucher()), name="toucher")
