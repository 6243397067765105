"""Coordination on networks behind the environment contract."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.environments.coordination.answer_lines import read
from swarm_ui.environments.coordination.problem import Problem, draw_problem
from swarm_ui.environments.coordination.scores import score
from swarm_ui.environments.coordination.splits import task_names
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation, Past

PATIENCE = 3
"""Number of actions after which an episode without an answer is truncated."""


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """A running episode."""

    problem: Problem
    history: tuple[Past, ...] = ()
    ended: bool = False


class CoordinationEnvironment:
    """Agents on a network solve a problem of distributed computing together.

    After AgentsNet (arXiv 2507.08616). An episode is one decision of the whole team: an ``answer``
    with one line for each agent, ``NAME: ANSWER``. It ends the episode, and its reward is the
    score in [0, 1] (:mod:`swarm_ui.environments.coordination.scores`). Other actions change
    nothing; the third of them truncates the episode.

    The observation shows the whole network;
    :class:`~swarm_ui.environments.coordination.message_passing.CoordinationPolicy` shows each agent
    its own part and gathers the answers.
    """

    name = "coordination"

    def __init__(self) -> None:
        self._state: _State | None = None

    @property
    def tasks(self) -> Sequence[str]:
        return task_names()

    @property
    def problem(self) -> Problem:
        """The problem of the running episode. Raises ``EnvironmentFault`` if there is none."""
        return self._running().problem

    async def reset(self, *, task: str, seed: int) -> Observation:
        """Start an episode.

        Raises:
            ConfigError: the task does not exist, or the seed is outside of the three ranges.
        """
        problem = draw_problem(task, seed)
        self._state = _State(problem=problem)
        return problem.observation()

    async def step(self, action: Action) -> Step:
        """Do one action.

        Raises:
            EnvironmentFault: no episode is running.
        """
        state = self._running()
        if state.ended:
            raise EnvironmentFault(f"{self.name}: the episode has ended; call reset first")
        problem = state.problem
        past = problem.observation().past(action)
        history = (*state.history, past)
        answered = action.action_type == "answer"
        ended = answered or len(history) >= PATIENCE
        self._state = _State(problem=problem, history=history, ended=ended)
        screen = problem.observation(history)
        if not answered:
            note = f"'{action.action_type}' has no effect; only 'answer' has one"
            return Step(observation=screen, truncated=ended, note=note)
        found = score(problem, read(action.text or "", problem.names))
        return Step(observation=screen, reward=found.value, terminated=True, note=found.note)

    async def close(self) -> None:
        self._state = None

    def snapshot(self) -> object:
        """The state of the running episode, which is immutable."""
        return self._running()

    def restore(self, state: object) -> Observation:
        """Continue an episode from a :meth:`snapshot`.

        Raises:
            EnvironmentFault: the state is not a snapshot of this environment.
        """
        if not isinstance(state, _State):
            raise EnvironmentFault(
                f"{self.name}: restore expects a snapshot of this environment, got "
                f"{type(state).__name__}"
            )
        self._state = state
        return state.problem.observation(state.history)

    def _running(self) -> _State:
        if self._state is None:
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        return self._state
