"""Invented pages and devices as an environment, so that a corpus can be made from them.

An episode is one screen in the middle of an invented task, and ends with the first action. Use it
for corpora only: it does not fulfil the contract for environments in which agents are evaluated.
"""

from __future__ import annotations

import random

from demos.base_agent.devices import device_sample
from demos.base_agent.screens import Words
from demos.base_agent.stream import page_sample
from swarm_ui.action import Action
from swarm_ui.environments import Done
from swarm_ui.environments.base import Stateful
from swarm_ui.observation import Element, Observation


class InventedScreens(Stateful):
    """Invented screens, with snapshots and grades. Equal tasks and seeds give equal screens."""

    name = "invented screens"
    tasks = ("pages", "devices")

    def begin(self, task: str, rng: random.Random) -> str:
        words = Words(rng.getrandbits(31))
        self.state = device_sample(words) if task == "devices" else page_sample(words)
        return str(self.state.decision.observation.goal)

    def screen(self) -> Observation:
        found: Observation = self.state.decision.observation
        return found

    def act(self, action: Action, element: Element | None) -> Done:
        return Done(reward=self.grade(action))

    def expert(self) -> Action:
        """The right action on the screen."""
        _ = self.progress  # raises a fault if no episode is running
        return self.state.action  # type: ignore[no-any-return]

    def grade(self, action: Action) -> float:
        """1.0 for the right action, else 0.0."""
        return float(action.key == self.state.action.key)
