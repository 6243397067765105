"""The embedded phone behind the environment contract."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action, ActionType
from swarm_ui.environment import Step
from swarm_ui.environments.phone.assignment import Assignment, assign
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import same_text
from swarm_ui.environments.phone.expert.solver import FAR, Intent, distance, solve
from swarm_ui.environments.phone.expert.subgoals import subgoals
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.environments.phone.ui.actions import act
from swarm_ui.environments.phone.ui.layout import View, long_view, view
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Element, Observation, Past

ACTIONS: tuple[ActionType, ...] = (
    "click",
    "input_text",
    "navigate_back",
    "navigate_home",
    "scroll",
    "answer",
    "status",
)
"""What an agent is told it can do; ``open_app`` is accepted too."""

FULL_DEVICE_ACTIONS: tuple[ActionType, ...] = (
    *ACTIONS,
    "long_press",
    "swipe",
    "keyboard_enter",
    "open_app",
    "wait",
)
"""The same on a whole phone, the device of the extended templates."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How the phone is shown; the defaults are those of the published suites."""

    long: bool = False
    """Screens of 12 to 20 elements, most of which lead nowhere, in page order: built so that an
    agent who sees a window of them does not know enough. Core templates only."""
    memory: int | None = None
    """How many of the last actions an observation tells, steps lost by waiting left out; ``None``:
    all of everything."""
    patience: int = 1
    """How many times its template's budget an episode may take."""


class State(msgspec.Struct, frozen=True):
    """A running episode put aside."""

    assignment: Assignment
    device: Device
    steps: int
    history: tuple[Past, ...]
    ended: bool
    view: View
    setting: Setting


class PhoneEnvironment:
    """A simulated Android phone; scores on it are not AndroidWorld scores.

    Success counts only if the agent declares it: the episode ends with ``status`` (``complete``,
    or ``infeasible`` for a task that cannot be done), or unsuccessfully when the budget of the
    task's template is used up. A question is answered with ``answer``, then declared complete.
    A tap on a value of a record copies it. The element order is random by episode and screen.
    """

    def __init__(
        self,
        *,
        screenshots: bool = False,
        long: bool = False,
        memory: int | None = None,
        patience: int = 1,
    ) -> None:
        """
        Args:
            screenshots: put a picture into every observation (of a long screen only its top fits).
            long, memory, patience: see :class:`Setting`.
        """
        if patience < 1 or (memory is not None and memory < 0):
            raise ConfigError(
                f"phone: expected patience >= 1 and memory >= 0, got {patience} and {memory}"
            )
        self._screenshots = screenshots
        self._option = self._setting = Setting(long=long, memory=memory, patience=patience)
        self._assignment: Assignment | None = None
        self._device = Device()
        self._view = View("", [], (), ())
        self._steps = 0
        self._history: tuple[Past, ...] = ()
        self._ended = True
        self._distance: int | None = None

    @property
    def name(self) -> str:
        return "phone (simulated, long screens)" if self._option.long else "phone (simulated)"

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(TEMPLATES)

    @property
    def budget(self) -> int:
        """Actions the running episode may take."""
        return self._running().template.budget * self._setting.patience

    async def reset(self, *, task: str, seed: int) -> Observation:
        """Start an episode.

        Raises:
            ConfigError: no such task, or a seed outside the published ranges.
        """
        return self.begin(task, seed)

    async def step(self, action: Action) -> Step:
        """Do one action.

        Raises:
            EnvironmentFault: no episode is running.
        """
        return self.act(action)

    async def close(self) -> None:
        self._assignment = None
        self._ended = True

    def begin(self, task: str, seed: int) -> Observation:
        """``reset`` without a coroutine."""
        self._assignment = assign(task, seed)
        self._setting = self._option
        if self._setting.long and self._assignment.template.full_device:
            raise ConfigError(f"phone: long screens are for core templates, not for {task!r}")
        self._device = self._assignment.start.clone()
        self._steps = 0
        self._history = ()
        self._ended = False
        return self._look()

    def act(self, action: Action) -> Step:
        """``step`` without a coroutine."""
        assignment = self._running()
        element = self._pointed(action)
        outcome = act(self._device, self._view, action)
        self._steps += 1
        self._history = (*self._history, _past(action, element))
        if outcome.declared is not None:
            self._ended = True
            reward = 1.0 if self._success(assignment, self._device, outcome.declared) else 0.0
            return Step(
                observation=self._observation(assignment),
                reward=reward,
                terminated=True,
                note=outcome.note,
            )
        self._ended = self._steps >= self.budget
        return Step(observation=self._look(), truncated=self._ended, note=outcome.note)

    def snapshot(self) -> State:
        """The running episode; taking it costs about a microsecond."""
        return State(
            self._running(ended=True),
            self._device.clone(),
            self._steps,
            self._history,
            self._ended,
            self._view,
            self._setting,
        )

    def restore(self, state: object) -> Observation:
        """Take up an episode put aside by :meth:`snapshot`, of this object or another one.

        Raises:
            EnvironmentFault: the state is not a phone's.
        """
        if not isinstance(state, State):
            raise EnvironmentFault(
                f"{self.name}: restore expects what snapshot() of a phone gave, got "
                f"{type(state).__name__}"
            )
        self._assignment = state.assignment
        self._device = state.device.clone()
        self._steps = state.steps
        self._history = state.history
        self._ended = state.ended
        self._view = state.view
        self._setting = state.setting
        self._distance = None
        return self._observation(state.assignment)

    def expert(self) -> Action:
        """What the reference solver does in the present state."""
        assignment = self._running()
        return self._action(solve(assignment.goal, assignment.start, self._device))

    def grade(self, action: Action) -> float:
        """1.0 if the solver needs fewer actions after ``action`` than before, else 0.0.

        Ending the episode is right only where the solver would end it the same way; so giving up
        on an infeasible task without having looked is wrong, although the task rewards it.
        """
        assignment = self._running()
        if action.action_type == "status":
            right = solve(assignment.goal, assignment.start, self._device)
            return 1.0 if right.kind == action.goal_status else 0.0
        after = self._device.clone()
        act(after, self._view, action)
        return 1.0 if self._far(assignment, after) < self.distance() else 0.0

    def distance(self) -> int:
        """Actions the reference solver needs from here to the end, the declaration included."""
        if self._distance is None:
            self._distance = self._far(self._running(), self._device)
        return self._distance

    def picture(self) -> bytes:
        """The present screen as a PNG."""
        if self._device.system is not None:
            from swarm_ui.environments.phone.render.full_screenshot import draw_full_screen

            return draw_full_screen(self._view)
        from swarm_ui.environments.phone.render.screenshot import draw_screen

        return draw_screen(self._view)

    def _far(self, assignment: Assignment, device: Device) -> int:
        return distance(assignment.goal, assignment.start, device, FAR)

    def _success(self, assignment: Assignment, device: Device, declared: str) -> bool:
        goal = assignment.goal
        if goal.infeasible:
            return declared == "infeasible"
        if declared != "complete" or subgoals(goal, assignment.start, device):
            return False
        if goal.answer is None:
            return True
        return device.answer is not None and same_text(device.answer, goal.answer)

    def _running(self, *, ended: bool = False) -> Assignment:
        if self._assignment is None or (self._ended and not ended):
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        return self._assignment

    def _pointed(self, action: Action) -> Element | None:
        at = self._view.find(action)
        return None if at is None else self._view.elements[at]

    def _look(self) -> Observation:
        assert self._assignment is not None
        self._distance = None
        see = long_view if self._setting.long else view
        self._view = see(self._device, self._assignment.salt)
        return self._observation(self._assignment)

    def _observation(self, assignment: Assignment) -> Observation:
        return Observation(
            goal=assignment.text,
            elements=self._view.elements,
            app=self._view.title,
            history=self._told(),
            actions=ACTIONS if self._device.system is None else FULL_DEVICE_ACTIONS,
            png=self.picture() if self._screenshots else None,
        )

    def _told(self) -> tuple[Past, ...]:
        memory = self._setting.memory
        if memory is None:
            return self._history
        acts = [past for past in self._history if past.action.action_type != "wait"]
        return tuple(acts[-memory:]) if memory else ()

    def _action(self, intent: Intent) -> Action:
        kind = intent.kind
        if kind in ("tap", "type"):
            index = self._view.order.index(intent.widget)
            widget = self._view.widgets[intent.widget]
            label = widget.text or widget.description
            if kind == "tap":
                return Action(action_type="click", target=label, index=index)
            return Action(action_type="input_text", target=label, index=index, text=intent.text)
        if kind == "back":
            return Action(action_type="navigate_back")
        if kind == "home":
            return Action(action_type="navigate_home")
        if kind == "shade":
            return Action(action_type="swipe", direction="down")
        if kind == "enter":
            return Action(action_type="keyboard_enter")
        if kind == "answer":
            return Action(action_type="answer", text=intent.text)
        if kind == "complete":
            return Action(action_type="status", goal_status="complete")
        if kind == "infeasible":
            return Action(action_type="status", goal_status="infeasible")
        return Action(action_type="scroll", direction="down" if kind == "down" else "up")


def _past(action: Action, element: Element | None) -> Past:
    """An action with what it acted on; a value that was tapped stays readable in the history."""
    if element is None:
        return Past(action=action)
    label = element.label
    if element.value and not element.editable and action.action_type == "click":
        label = f"{label} {element.value}"
    return Past(action=action, role=element.role, label=label)
