"""Coordination on networks behind the environment contract."""

from __future__ import annotations

import random

from swarm_ui.action import Action
from swarm_ui.environments.base import Done, Stateful
from swarm_ui.environments.coordination.answers import read, score
from swarm_ui.environments.coordination.problem import Problem, draw_problem, task_names
from swarm_ui.observation import Observation


class CoordinationEnvironment(Stateful):
    """Agents on a network solve a problem of distributed computing together.

    After AgentsNet (arXiv 2507.08616). An episode is one decision of the whole team: an ``answer``
    with one line for each agent, ``NAME: ANSWER``. It ends the episode, and its reward is the
    score in [0, 1] (:mod:`swarm_ui.environments.coordination.answers`). Other actions change
    nothing; the third of them truncates the episode.

    The observation shows the whole network;
    :class:`~swarm_ui.environments.coordination.policy.CoordinationPolicy` shows each agent
    its own part and gathers the answers.
    """

    name = "coordination"
    tasks = task_names()
    budget = 3
    actions = ("answer",)
    state_type = Problem
    state: Problem

    @property
    def problem(self) -> Problem:
        """The problem of the running episode. Raises ``EnvironmentFault`` if there is none."""
        _ = self.progress
        return self.state

    def begin(self, task: str, rng: random.Random) -> str:
        self.state = draw_problem(task, self.seed)
        return self.state.observation().goal

    def screen(self) -> Observation:
        return self.state.observation()

    def act(self, action: Action, element: object) -> Done:
        return Done(*score(self.state, read(action.text or "", self.state.names)))
