"""Invented pages and devices as an environment, so that a corpus can be made from them.

An episode is one screen in the middle of an invented task, and ends with the first action. Use it
for corpora only: it does not fulfil the contract for environments in which agents are evaluated.
"""

from __future__ import annotations

import random

from demos.base_agent.devices import device_sample
from demos.base_agent.screens import ActionSample, Words
from demos.base_agent.stream import Mix, Stream
from swarm_ui.action import Action
from swarm_ui.environments import Done
from swarm_ui.environments.base import Stateful
from swarm_ui.nodes.models.tiny_agent.vocabulary import GENERAL_WORDS
from swarm_ui.observation import Element, Observation

_WORDS = tuple(word for word in GENERAL_WORDS if word.isalpha() and len(word) > 2)
"""Ordinary words, which are mixed into the screens."""


class InventedScreens(Stateful):
    """Invented screens, with snapshots and grades. Equal tasks and seeds give equal screens."""

    name = "invented screens"
    tasks = ("pages", "devices")
    state_type = ActionSample

    def begin(self, task: str, rng: random.Random) -> str:
        words = Words(rng.getrandbits(31), _WORDS)
        devices = task == "devices"
        self.state = device_sample(words) if devices else Stream(0, _WORDS, Mix()).page(words)
        return str(self.state.decision.observation.goal)

    def screen(self) -> Observation:
        found: Observation = self.state.decision.observation
        return found

    def act(self, action: Action, element: Element | None) -> Done:
        return Done(reward=self.grade(action))

    def expert(self) -> Action:
        """The right action on the screen."""
        _ = self.progress  # raises a fault if no episode is running
        found: Action = self.state.action
        return found

    def grade(self, action: Action) -> float:
        """1.0 for the right action, else 0.0."""
        right: Action = self.state.action
        return float(action.key == right.key)
