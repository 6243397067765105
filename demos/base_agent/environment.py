"""Invented pages and devices as an environment, so that a corpus can be made from them.

An episode is one screen in the middle of an invented task, and ends with the first action. Use it
for corpora only: it does not fulfil the contract for environments in which agents are evaluated.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from demos.base_agent.devices import device_sample
from demos.base_agent.screens import WordSampler
from demos.base_agent.stream import Mix, Stream
from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.vocabulary import GENERAL_WORDS
from swarm_ui.observation import Observation

_WORDS = tuple(word for word in GENERAL_WORDS if word.isalpha() and len(word) > 2)
"""Ordinary words, which are mixed into the screens."""


class _State(NamedTuple):
    observation: Observation
    right: Action


class InventedScreens:
    """An environment of invented screens, with snapshots and grades. Equal tasks and seeds give
    equal screens."""

    name = "invented screens"
    tasks: Sequence[str] = ("pages", "devices")

    def __init__(self) -> None:
        self._now: _State | None = None

    async def reset(self, *, task: str, seed: int) -> Observation:
        if task not in self.tasks:
            expected = " or ".join(self.tasks)
            raise ConfigError(f"{self.name} has no task {task!r}; expected {expected}")
        rng = random.Random(derive(seed, task))
        words = WordSampler(rng, _WORDS)
        if task == "devices":
            sample = device_sample(words)
        else:
            sample = Stream(rng.getrandbits(31), _WORDS, Mix()).page(words)
        assert isinstance(sample.action, Action)  # only window samples abstain
        self._now = _State(sample.decision.observation, sample.action)
        return self._now.observation

    async def step(self, action: Action) -> Step:
        reward = self.grade(action)
        screen = self._running().observation
        self._now = None
        return Step(observation=screen, reward=reward, terminated=True)

    async def close(self) -> None:
        self._now = None

    def snapshot(self) -> object:
        return self._running()

    def restore(self, state: object) -> Observation:
        if not isinstance(state, _State):
            raise ConfigError(f"restore: expected a snapshot() result, got {type(state).__name__}")
        self._now = state
        return state.observation

    def expert(self) -> Action:
        return self._running().right

    def grade(self, action: Action) -> float:
        return float(action.key == self._running().right.key)

    def _running(self) -> _State:
        if self._now is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        return self._now
