"""The phone of a team in which every agent has one app open: behind the environment contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.phone.assignment import Assignment
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.environment import PhoneEnvironment, State
from swarm_ui.environments.phone.expert.solver import Intent, perform, solve
from swarm_ui.environments.phone.split.app_panes import pane, with_pane
from swarm_ui.environments.phone.split.split_assignment import (
    MOST_AGENTS,
    SplitAssignment,
    check_agents,
    split_assign,
)
from swarm_ui.environments.phone.split.split_templates import TEMPLATES, SplitTemplate
from swarm_ui.environments.phone.tasks.goal import Create
from swarm_ui.environments.phone.ui.actions import act
from swarm_ui.environments.phone.ui.layout import View
from swarm_ui.observation import Observation


class SplitPhone(PhoneEnvironment):
    """Split facts: the values that a task needs are on the screens of other agents.

    The apps of one phone are open side by side, one for each agent. The screen is divided into
    panes, and :class:`~swarm_ui.agent_view.Pane` shows each agent its own pane. A task ends in one
    app. Only this app is operated, its pane comes first, and ``Observation.app`` is its title; the
    other panes list the records of their apps with all values. The goal names apps and records, but
    no value, so an agent without messages cannot solve a task.

    Success check and splits of parameters by seed are those of
    :class:`~swarm_ui.environments.phone.PhoneEnvironment`. It is a simulation.
    """

    def __init__(
        self, *, agents: int = MOST_AGENTS, whole: bool = False, memory: int | None = None
    ) -> None:
        """
        Args:
            agents: number of apps of each episode, 4 to 10; the apps that a task does not need are
                drawn at random and hold wrong values.
            whole: give the same tasks to one agent that operates all apps on the usual screens of
                the phone, one at a time, starting at the home screen.
            memory: see :class:`~swarm_ui.environments.phone.PhoneEnvironment`.

        Raises:
            ConfigError: the number of agents is out of range.
        """
        super().__init__(memory=memory)
        check_agents(agents)
        self._agents, self._whole = agents, whole

    @property
    def name(self) -> str:
        kind = "one agent" if self._whole else "split facts"
        return f"phone (simulated, {kind}, {self._agents} apps)"

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(TEMPLATES)

    def assign(self, task: str, seed: int) -> SplitAssignment:
        return split_assign(task, seed, agents=self._agents, whole=self._whole)

    def team(self, task: str, seed: int) -> tuple[str, ...]:
        """The apps of an episode, which are the names of its panes."""
        return self.assign(task, seed).team

    def spec(self, task: str) -> SplitTemplate:
        """The template: which app acts, and which facts of other apps it needs."""
        return TEMPLATES[task]

    def _operate(self, assignment: Assignment, device: Device, seen: View, action: Action) -> str:
        split = cast(SplitAssignment, assignment)
        if split.whole:
            return act(device, seen, action)
        if action.index is not None and action.index >= len(seen.elements):
            return f"only {split.acting} can be operated"
        if action.action_type == "open_app":
            return f"only {split.acting} is open"
        note = act(device, seen, action)
        _stay(device, split.acting)
        return note

    def _intent(self, assignment: Assignment, device: Device) -> Intent:
        """The next action of the solver. If one agent operates all apps, the solver looks up one
        value at a time."""
        goal = assignment.goal
        missing = next((s for s in goal.sources if s.value not in device.copied), None)
        if missing is not None:
            wants = [w for w in goal.wants if isinstance(w, Create)]
            first = tuple(msgspec.structs.replace(want, source=missing) for want in wants)
            goal = msgspec.structs.replace(goal, wants=first)
        return solve(goal, assignment.start, device)

    def _perform(self, assignment: Assignment, device: Device, intent: Intent) -> None:
        split = cast(SplitAssignment, assignment)
        perform(device, intent)
        if not split.whole:
            _stay(device, split.acting)

    def _observation(self, state: State) -> Observation:
        screen = super()._observation(state)
        split = cast(SplitAssignment, state.assignment)
        if split.whole:
            return screen
        elements = list(with_pane(screen.elements, split.acting))
        for app in split.team:
            if app != split.acting:
                elements.extend(pane(state.device, app, len(elements)))
        return msgspec.structs.replace(screen, elements=tuple(elements))


def _stay(device: Device, app: str) -> None:
    """Return to the app's first screen if the home screen is shown."""
    if not device.stack:
        device.show((Screen(app),))
