"""The simulated phone behind the environment contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.action import Action, ActionType
from swarm_ui.environment import Step
from swarm_ui.environments.phone.effects import Launch
from swarm_ui.environments.phone.goal import CHECKER, check
from swarm_ui.environments.phone.kinds import Assignment, draw
from swarm_ui.environments.phone.solver import UNREACHABLE, Intent, perform, solve
from swarm_ui.environments.phone.state import Device
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.environments.phone.view import View, last_page, view
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past

ACTIONS: tuple[ActionType, ...] = (
    "click", "input_text", "navigate_back", "navigate_home", "scroll", "answer", "status",
)  # fmt: skip
"""The actions offered; ``open_app``, ``swipe`` and others that a phone knows are accepted too."""
NOTHING = "nothing happened"
_TAPS = frozenset(("click", "double_tap", "long_press"))
_SOLVER: Mapping[str, Action] = {
    "back": Action(action_type="navigate_back"),
    "home": Action(action_type="navigate_home"),
    "complete": Action(action_type="status", goal_status="complete"),
    "infeasible": Action(action_type="status", goal_status="infeasible"),
    "down": Action(action_type="scroll", direction="down"),
    "up": Action(action_type="scroll", direction="up"),
}
"""Kind of intent of the reference solver -> the action, where there is only one."""


class State(msgspec.Struct, kw_only=True):
    """A running episode; :meth:`PhoneEnvironment.snapshot` returns a copy."""

    assignment: Assignment
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

    def __init__(self, *, screenshots: bool = False) -> None:
        """
        Args:
            screenshots: add a picture to every observation.
        """
        self._screenshots = screenshots
        self._state: State | None = None
        self._distance: int | None = None

    @property
    def name(self) -> str:
        return "phone (simulated)"

    @property
    def checker(self) -> int:
        """Version of the success check."""
        return CHECKER

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(TEMPLATES)

    @property
    def budget(self) -> int:
        """Actions that the running episode may take."""
        return self._running().assignment.template.budget

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
        device = assignment.start.clone()
        seen = self._look(device, assignment.salt)
        state = State(assignment=assignment, device=device, view=seen)
        self._state, self._distance = state, None
        return self._observation(state)

    def assign(self, task: str, seed: int) -> Assignment:
        """Draw the parameters of a task; equal arguments give equal assignments."""
        template = TEMPLATES.get(task)
        if template is None:
            raise ConfigError(f"phone: no task {task!r}; expected one of {', '.join(TEMPLATES)}")
        return draw(template, seed)

    def act(self, action: Action) -> Step:
        """The same as :meth:`step`, without a coroutine."""
        state, budget = self._running(), self.budget
        past = _past(action, state.view)
        state.steps += 1
        state.history = (*state.history, past)
        if action.action_type == "status":
            state.ended = True
            reward = float(_success(state, action))
            return Step(observation=self._observation(state), reward=reward, terminated=True)
        note = self._operate(state.assignment, state.device, state.view, action)
        state.ended = state.steps >= budget
        state.view = self._look(state.device, state.assignment.salt)
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

    def expert(self) -> Action:
        """The action of the reference solver in the present state."""
        state = self._running()
        intent = self._intent(state.assignment, state.device)
        if intent.kind == "answer":
            return Action(action_type="answer", text=intent.text)
        if intent.kind not in ("tap", "type"):
            return _SOLVER[intent.kind]
        index = state.view.order.index(intent.widget)
        widget = state.view.widgets[intent.widget]
        if intent.kind == "tap":
            return Action(action_type="click", target=widget.text, index=index)
        return Action(action_type="input_text", target=widget.text, index=index, text=intent.text)

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
        from swarm_ui.environments.phone.picture import draw_screen

        return draw_screen(state.view)

    def _running(self, *, ended: bool = False) -> State:
        if self._state is None or (self._state.ended and not ended):
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        return self._state

    def _look(self, device: Device, salt: int) -> View:
        """The screen of a device as it is shown."""
        return view(device, salt)

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
            history=state.history,
            actions=ACTIONS,
            png=self.picture() if self._screenshots else None,
        )


def _success(state: State, declared: Action) -> bool:
    goal, device = state.assignment.goal, state.device
    if declared.goal_status != ("infeasible" if goal.infeasible else "complete"):
        return False
    return not check(goal, state.assignment.start, device) and goal.answered(device)


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


def act(device: Device, view: View, action: Action) -> str:
    """Apply an action to ``device``, shown as ``view``. Returns a note if the action is invalid."""
    kind = action.action_type
    note: str | None = None
    device.toast = ""
    if kind in _TAPS or kind in ("input_text", "select"):
        note = _point(device, view, action)
    elif kind == "navigate_back":
        note = "" if device.stack else "already at home"
        device.back()
    elif kind == "navigate_home":
        note = "" if device.stack else "already at home"
        device.show(())
    elif kind == "open_app":
        app = (action.app_name or "").casefold().strip()
        if app in device.installed:
            Launch(app).apply(device)
        else:
            note = f"no app {app!r}"
    elif kind == "answer":
        device.answer = action.text
    elif kind in ("scroll", "swipe"):
        note = _scroll(device, action)
    else:
        note = NOTHING
    return note or ""


def _point(device: Device, view: View, action: Action) -> str | None:
    index = view.find(action)
    if index is None:
        where = f"element {action.index}" if action.index is not None else "element there"
        return f"no {where}: the screen has {len(view.elements)} elements"
    widget = view.widgets[view.order[index]]
    if action.action_type == "input_text":
        if widget.field is None:
            return f"{widget.role} “{widget.text}” takes no text"
        device.fill_in(widget.field, " ".join((action.text or "").split()))
        return None
    if action.action_type == "select":
        return f"{widget.role} “{widget.text}” has no options to select from"
    return NOTHING if widget.effect is None else widget.effect.apply(device)


def _scroll(device: Device, action: Action) -> str:
    forward = action.direction in ("down", "right")
    if action.action_type == "swipe":  # the finger moves opposite to the view
        forward = not forward
    page = device.page + (1 if forward else -1)
    if not 0 <= page <= last_page(device):
        return "nothing to scroll there"
    device.page = page
    return ""
