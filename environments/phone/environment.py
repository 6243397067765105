"""The embedded phone behind the environment contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.action import Action, ActionType
from swarm_ui.environment import Step
from swarm_ui.environments.phone.assignment import Assignment, assign
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import same_text
from swarm_ui.environments.phone.expert.solver import distance, solve
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
"""The actions offered on the core device; ``open_app`` is accepted too."""

FULL_DEVICE_ACTIONS: tuple[ActionType, ...] = (
    *ACTIONS,
    "long_press",
    "swipe",
    "keyboard_enter",
    "open_app",
    "wait",
)
"""The actions offered on the full device of the extended templates."""
_ACTIONS: Mapping[str, Action] = {
    "back": Action(action_type="navigate_back"),
    "home": Action(action_type="navigate_home"),
    "shade": Action(action_type="swipe", direction="down"),
    "enter": Action(action_type="keyboard_enter"),
    "complete": Action(action_type="status", goal_status="complete"),
    "infeasible": Action(action_type="status", goal_status="infeasible"),
    "down": Action(action_type="scroll", direction="down"),
    "up": Action(action_type="scroll", direction="up"),
}
"""Kind of intent of the reference solver -> the action, where there is only one."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How the phone is shown; the defaults are those of the published suites."""

    long: bool = False
    """Long screens: 12 to 20 elements in page order, most of them without effect, so that an
    agent that sees only a window of the screen lacks information. Core templates only."""
    memory: int | None = None
    """How many of the last actions an observation lists, waits left out; ``None``: all actions."""
    patience: int = 1
    """Factor on the budget of the template."""


class State(msgspec.Struct, frozen=True):
    """A snapshot of a running episode."""

    assignment: Assignment
    device: Device
    steps: int
    history: tuple[Past, ...]
    ended: bool
    view: View
    options: Options


class PhoneEnvironment:
    """A simulated Android phone; scores on it are not AndroidWorld scores.

    A task succeeds only if the agent declares it: ``status`` (``complete``, or ``infeasible`` for
    a task that cannot be done) ends the episode. It also ends, without success, when the budget
    of the template is used up. To answer a question, use ``answer`` and then declare the task
    complete. A click on a value of a record copies it. The order of elements is random for each
    episode and screen.
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
            screenshots: add a picture to every observation; it shows the top of a long screen.
            long, memory, patience: see :class:`Options`.
        """
        if patience < 1 or (memory is not None and memory < 0):
            raise ConfigError(
                f"phone: expected patience >= 1 and memory >= 0, got {patience} and {memory}"
            )
        self._screenshots = screenshots
        self._own_options = self._options = Options(long=long, memory=memory, patience=patience)
        self._assignment: Assignment | None = None
        self._device = Device()
        self._view = View("", [], (), ())
        self._steps = 0
        self._history: tuple[Past, ...] = ()
        self._ended = True
        self._distance: int | None = None

    @property
    def name(self) -> str:
        return "phone (simulated, long screens)" if self._own_options.long else "phone (simulated)"

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(TEMPLATES)

    @property
    def budget(self) -> int:
        """Actions that the running episode may take."""
        return self._running().template.budget * self._options.patience

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
        """The same as :meth:`reset`, without a coroutine."""
        self._assignment = assign(task, seed)
        self._options = self._own_options
        if self._options.long and self._assignment.template.full_device:
            raise ConfigError(f"phone: long screens are for core templates, not for {task!r}")
        self._device = self._assignment.start.clone()
        self._steps = 0
        self._history = ()
        self._ended = False
        return self._update_view(self._assignment)

    def act(self, action: Action) -> Step:
        """The same as :meth:`step`, without a coroutine."""
        assignment = self._running()
        at = self._view.find(action)
        element = None if at is None else self._view.elements[at]
        outcome = act(self._device, self._view, action)
        self._steps += 1
        self._history = (*self._history, _past(action, element))
        if outcome.declared is not None:
            self._ended = True
            reward = 1.0 if self._success(assignment, outcome.declared) else 0.0
            return Step(
                observation=self._observation(assignment),
                reward=reward,
                terminated=True,
                note=outcome.note,
            )
        self._ended = self._steps >= self.budget
        return Step(
            observation=self._update_view(assignment), truncated=self._ended, note=outcome.note
        )

    def snapshot(self) -> State:
        """The state of the running episode; this takes about a microsecond."""
        return State(
            self._running(ended=True),
            self._device.clone(),
            self._steps,
            self._history,
            self._ended,
            self._view,
            self._options,
        )

    def restore(self, state: object) -> Observation:
        """Continue an episode from a :meth:`snapshot` of this or another phone.

        Raises:
            EnvironmentFault: the state is not a snapshot of a phone.
        """
        if not isinstance(state, State):
            raise EnvironmentFault(
                f"{self.name}: restore expects the snapshot of a phone, got {type(state).__name__}"
            )
        self._assignment = state.assignment
        self._device = state.device.clone()
        self._steps = state.steps
        self._history = state.history
        self._ended = state.ended
        self._view = state.view
        self._options = state.options
        self._distance = None
        return self._observation(state.assignment)

    def expert(self) -> Action:
        """The action of the reference solver in the present state."""
        assignment = self._running()
        intent = solve(assignment.goal, assignment.start, self._device)
        if intent.kind == "answer":
            return Action(action_type="answer", text=intent.text)
        if intent.kind not in ("tap", "type"):
            return _ACTIONS[intent.kind]
        index = self._view.order.index(intent.widget)
        widget = self._view.widgets[intent.widget]
        label = widget.text or widget.description
        if intent.kind == "tap":
            return Action(action_type="click", target=label, index=index)
        return Action(action_type="input_text", target=label, index=index, text=intent.text)

    def grade(self, action: Action) -> float:
        """1.0 if the solver needs fewer actions after ``action`` than before, else 0.0.

        An action that ends the episode is right only where the solver would end it the same way.
        It is therefore wrong to declare a task infeasible without having looked, although the task
        rewards it.
        """
        assignment = self._running()
        if action.action_type == "status":
            right = solve(assignment.goal, assignment.start, self._device)
            return 1.0 if right.kind == action.goal_status else 0.0
        after = self._device.clone()
        act(after, self._view, action)
        return 1.0 if self._distance_of(after) < self.distance() else 0.0

    def distance(self) -> int:
        """Actions the reference solver needs to the end, the last ``status`` included."""
        if self._distance is None:
            self._distance = self._distance_of(self._device)
        return self._distance

    def picture(self) -> bytes:
        """The present screen as a PNG."""
        if self._device.system is not None:
            from swarm_ui.environments.phone.render.full_screenshot import draw_full_screen

            return draw_full_screen(self._view)
        from swarm_ui.environments.phone.render.screenshot import draw_screen

        return draw_screen(self._view)

    def _distance_of(self, device: Device) -> int:
        assignment = self._running()
        return distance(assignment.goal, assignment.start, device)

    def _success(self, assignment: Assignment, declared: str) -> bool:
        goal, device = assignment.goal, self._device
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

    def _update_view(self, assignment: Assignment) -> Observation:
        self._distance = None
        make_view = long_view if self._options.long else view
        self._view = make_view(self._device, assignment.salt)
        return self._observation(assignment)

    def _observation(self, assignment: Assignment) -> Observation:
        history, memory = self._history, self._options.memory
        if memory is not None:
            acts = [past for past in history if past.action.action_type != "wait"]
            history = tuple(acts[-memory:]) if memory else ()
        return Observation(
            goal=assignment.text,
            elements=self._view.elements,
            app=self._view.title,
            history=history,
            actions=ACTIONS if self._device.system is None else FULL_DEVICE_ACTIONS,
            png=self.picture() if self._screenshots else None,
        )


def _past(action: Action, element: Element | None) -> Past:
    """An action and the element it acted on; the history keeps a value that was clicked."""
    if element is None:
        return Past(action=action)
    label = element.label
    if element.value and not element.editable and action.action_type == "click":
        label = f"{label} {element.value}"
    return Past(action=action, role=element.role, label=label)
