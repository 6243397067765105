"""The embedded phone behind the environment contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.action import Action, ActionType, GoalStatus
from swarm_ui.environment import Step
from swarm_ui.environments.phone.assignment import Assignment, assign
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.schema import same_text
from swarm_ui.environments.phone.expert.solver import UNREACHABLE, Intent, perform, solve
from swarm_ui.environments.phone.expert.subgoals import subgoals
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.environments.phone.ui.actions import act
from swarm_ui.environments.phone.ui.layout import View, long_view, view
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past

ACTIONS: tuple[ActionType, ...] = (
    "click", "input_text", "navigate_back", "navigate_home", "scroll", "answer", "status",
)  # fmt: skip
"""The actions offered on the core device; ``open_app`` is accepted too."""

FULL_DEVICE_ACTIONS: tuple[ActionType, ...] = (
    *ACTIONS, "long_press", "swipe", "keyboard_enter", "open_app", "wait",
)  # fmt: skip
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


CHECKER = 2
"""Version of the success check, which episodes and results keep.

Version 1 compared nothing on tasks that cannot be done, and neither the switches of new records nor
the notifications that a goal does not name.
"""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the phone's screens; the defaults are those of the published suites."""

    long: bool = False
    """Long screens: 12 to 20 elements in page order, most of them without effect, so that an
    agent that sees only a window of the screen lacks information. Core templates only."""
    memory: int | None = None
    """Number of last actions that an observation lists, without waits; ``None``: all actions."""
    patience: int = 1
    """Factor on the budget of the template."""


class State(msgspec.Struct, kw_only=True):
    """A running episode; :meth:`PhoneEnvironment.snapshot` returns a copy."""

    assignment: Assignment
    options: Options
    device: Device
    view: View
    steps: int = 0
    history: tuple[Past, ...] = ()
    ended: bool = False

    def copy(self) -> State:
        return msgspec.structs.replace(self, device=self.device.clone())


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
        self._options = Options(long=long, memory=memory, patience=patience)
        self._state: State | None = None
        self._distance: int | None = None

    @property
    def name(self) -> str:
        return "phone (simulated, long screens)" if self._options.long else "phone (simulated)"

    @property
    def checker(self) -> int:
        return CHECKER

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(TEMPLATES)

    @property
    def budget(self) -> int:
        """Actions that the running episode may take."""
        state = self._running()
        return state.assignment.template.budget * state.options.patience

    async def reset(self, *, task: str, seed: int) -> Observation:
        """Start an episode.

        Raises:
            ConfigError: the task does not exist, or the seed is outside the published ranges.
        """
        return self.begin(task, seed)

    async def step(self, action: Action) -> Step:
        """Do one action.

        Raises:
            EnvironmentFault: no episode is running.
        """
        return self.act(action)

    async def close(self) -> None:
        self._state = None

    def begin(self, task: str, seed: int) -> Observation:
        """The same as :meth:`reset`, without a coroutine."""
        assignment = self.assign(task, seed)
        if self._options.long and assignment.template.full_device:
            raise ConfigError(f"phone: long screens are for core templates, not for {task!r}")
        device = assignment.start.clone()
        seen = _look(device, assignment.salt, self._options)
        state = State(assignment=assignment, options=self._options, device=device, view=seen)
        self._state, self._distance = state, None
        return self._observation(state)

    def assign(self, task: str, seed: int) -> Assignment:
        """Draw the parameters of a task; equal arguments give equal assignments."""
        return assign(task, seed)

    def act(self, action: Action) -> Step:
        """The same as :meth:`step`, without a coroutine."""
        state, budget = self._running(), self.budget
        past = _past(action, state.view)
        state.steps += 1
        state.history = (*state.history, past)
        if action.action_type == "status":
            state.ended = True
            reward = 1.0 if _success(state, action.goal_status) else 0.0
            return Step(observation=self._observation(state), reward=reward, terminated=True)
        note = self._operate(state.assignment, state.device, state.view, action)
        state.ended = state.steps >= budget
        state.view = _look(state.device, state.assignment.salt, state.options)
        self._distance = None
        return Step(observation=self._observation(state), truncated=state.ended, note=note)

    def snapshot(self) -> State:
        """The state of the running episode; this takes about a microsecond."""
        return self._running(ended=True).copy()

    def restore(self, state: object) -> Observation:
        """Continue an episode from a :meth:`snapshot` of this or another phone.

        Raises:
            EnvironmentFault: the state is not a snapshot of a phone.
        """
        if not isinstance(state, State):
            raise EnvironmentFault(
                f"{self.name}: restore expects the snapshot of a phone, got {type(state).__name__}"
            )
        self._state, self._distance = state.copy(), None
        return self._observation(state)

    def history_with(self, replaced: Mapping[int, Past]) -> tuple[Past, ...]:
        """The history that the present observation would have if other actions had been taken; see
        :class:`swarm_ui.environment.Forgetful`."""
        state = self._running(ended=True)
        history = [replaced.get(step, past) for step, past in enumerate(state.history)]
        return _remembered(history, state.options.memory)

    def expert(self) -> Action:
        """The action of the reference solver in the present state."""
        state = self._running()
        intent = self._intent(state.assignment, state.device)
        if intent.kind == "answer":
            return Action(action_type="answer", text=intent.text)
        if intent.kind not in ("tap", "type"):
            return _ACTIONS[intent.kind]
        index = state.view.order.index(intent.widget)
        widget = state.view.widgets[intent.widget]
        label = widget.text or widget.description
        if intent.kind == "tap":
            return Action(action_type="click", target=label, index=index)
        return Action(action_type="input_text", target=label, index=index, text=intent.text)

    def grade(self, action: Action) -> float:
        """1.0 if the solver needs fewer actions after ``action`` than before, else 0.0.

        An action that ends the episode is right only if the solver would end it in the same way. It
        is therefore wrong to declare a task infeasible before opening the list that lacks the
        record, although the success check accepts it.
        """
        state = self._running()
        assignment = state.assignment
        if action.action_type == "status":
            return float(self._intent(assignment, state.device).kind == action.goal_status)
        after = state.device.clone()
        self._operate(assignment, after, state.view, action)
        return float(self._steps_left(assignment, after) < self.distance())

    def distance(self) -> int:
        """Number of actions the reference solver still needs, the final ``status`` included."""
        if self._distance is None:
            state = self._running()
            self._distance = self._steps_left(state.assignment, state.device)
        return self._distance

    def picture(self) -> bytes:
        """The present screen as a PNG."""
        state = self._running(ended=True)
        from swarm_ui.environments.phone.render.screenshot import draw_full_screen, draw_screen

        draw = draw_screen if state.device.system is None else draw_full_screen
        return draw(state.view)

    def _running(self, *, ended: bool = False) -> State:
        if self._state is None or (self._state.ended and not ended):
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        return self._state

    def _operate(self, assignment: Assignment, device: Device, seen: View, action: Action) -> str:
        """Apply an action to a device, shown as ``seen``. Returns a note if it is invalid."""
        return act(device, seen, action)

    def _intent(self, assignment: Assignment, device: Device) -> Intent:
        """The next intent of the reference solver."""
        return solve(assignment.goal, assignment.start, device)

    def _steps_left(self, assignment: Assignment, device: Device) -> int:
        """Number of actions that the reference solver needs from a device on."""
        now = device.clone()
        for done in range(1, UNREACHABLE):
            intent = self._intent(assignment, now)
            if intent.kind in ("complete", "infeasible"):
                return done
            self._perform(assignment, now, intent)
        return UNREACHABLE

    def _perform(self, assignment: Assignment, device: Device, intent: Intent) -> None:
        """Apply an intent that does not end the episode."""
        perform(device, intent)

    def _observation(self, state: State) -> Observation:
        return Observation(
            goal=state.assignment.text,
            elements=state.view.elements,
            app=state.view.title,
            history=_remembered(state.history, state.options.memory),
            actions=ACTIONS if state.device.system is None else FULL_DEVICE_ACTIONS,
            png=self.picture() if self._screenshots else None,
        )


def _look(device: Device, salt: int, options: Options) -> View:
    return (long_view if options.long else view)(device, salt)


def _remembered(history: Sequence[Past], memory: int | None) -> tuple[Past, ...]:
    """The past actions that an observation lists; see :class:`Options`."""
    if memory is None:
        return tuple(history)
    acts = [past for past in history if past.action.action_type != "wait"]
    return tuple(acts[-memory:]) if memory else ()


def _success(state: State, declared: GoalStatus | None) -> bool:
    goal, device = state.assignment.goal, state.device
    if declared != ("infeasible" if goal.infeasible else "complete"):
        return False
    if subgoals(goal, state.assignment.start, device):
        return False
    return goal.answer is None or same_text(device.answer or "", goal.answer)


def _past(action: Action, seen: View) -> Past:
    """An action and the element it acts on; the history keeps a value that is clicked."""
    at = seen.find(action)
    if at is None:
        return Past(action=action)
    element = seen.elements[at]
    label = element.label
    if element.value and not element.editable and action.action_type == "click":
        label = f"{label} {element.value}"
    return Past(action=action, role=element.role, label=label)
