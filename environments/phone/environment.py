"""The simulated phone behind the environment contract."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from swarm_ui.action import POINTING, Action, ActionType
from swarm_ui.environments.base import Done, Stateful
from swarm_ui.environments.phone.goal import check
from swarm_ui.environments.phone.kinds import Assignment, draw
from swarm_ui.environments.phone.solver import UNREACHABLE, solve
from swarm_ui.environments.phone.state import Device, Screen, Widget
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.environments.phone.view import View, view, widgets
from swarm_ui.observation import Element, Observation, Past

ACTIONS: tuple[ActionType, ...] = (
    "click", "input_text", "navigate_back", "navigate_home", "scroll", "answer", "status",
)  # fmt: skip
"""The actions offered; ``open_app``, ``swipe`` and others that a phone knows are accepted too."""
NOTHING = "nothing happened"


class State(msgspec.Struct, frozen=True):
    """The state of an episode."""

    assignment: Assignment
    device: Device
    """Do not change it."""
    view: View


class PhoneEnvironment(Stateful):
    """A simulated Android phone; scores on it are not AndroidWorld scores.

    A task succeeds only if the agent declares it: ``status`` (``complete``, or ``infeasible`` for
    a task that cannot be done) ends the episode. It also ends, without success, when the budget
    of the template is used up. To answer a question, use ``answer`` and then declare the task
    complete. A click on a value of a record copies it. The order of elements is random for each
    episode and screen.
    """

    name = "phone (simulated)"
    tasks: Sequence[str] = tuple(TEMPLATES)
    actions = ACTIONS
    checker = 2
    """Version of the success check, which episodes and results keep. Version 1 compared nothing on
    tasks that cannot be done, nor the switches of new records."""
    state: State

    def __init__(self, *, screenshots: bool = False) -> None:
        """
        Args:
            screenshots: add a picture to every observation.
        """
        self._screenshots = screenshots
        self._graded: tuple[State, int] | None = None

    @classmethod
    def of_split(cls, split: Literal["train", "test"]) -> Sequence[str]:
        """The tasks of the training templates, or those of templates that no training shows."""
        wanted = "train" if split == "train" else "new_templates"
        return tuple(name for name, one in TEMPLATES.items() if one.split == wanted)

    def begin(self, task: str, rng: random.Random) -> str:
        assignment = self.assign(task, self.seed)
        device = assignment.start.clone()
        self.budget = assignment.budget
        self.state = State(assignment, device, view(device, assignment.salt))
        return assignment.text

    def screen(self) -> Observation:
        seen, png = self.state.view, None
        if self._screenshots:
            from swarm_ui.environments.phone.picture import draw_screen

            png = draw_screen(seen)
        return Observation(goal="", elements=seen.elements, app=seen.title, png=png)

    def misfit(self, action: Action, screen: Observation) -> str:
        return ""  # the phone knows more kinds of action than it offers

    def past(self, action: Action, screen: Observation) -> Past:
        """An action and the element it acts on; the history keeps a value that is clicked."""
        at = self.state.view.find(action)
        if at is None:
            return Past(action=action)
        element = screen.elements[at]
        label = element.label
        if element.value and not element.editable and action.action_type == "click":
            label = f"{label} {element.value}"
        return Past(action=action, role=element.role, label=label)

    def act(self, action: Action, element: Element | None) -> Done | str:
        state = self.state
        if action.action_type == "status":
            return Done(float(_success(state, action)))
        device = state.device.clone()
        note = self._operate(device, state.view, action)
        self.state = State(state.assignment, device, view(device, state.assignment.salt))
        return note

    def assign(self, task: str, seed: int) -> Assignment:
        """Draw the parameters of a task; equal arguments give equal assignments."""
        return draw(TEMPLATES[task], seed)

    def expert(self) -> Action:
        """The action of the reference solver in the present state."""
        state = self._running
        action = solve(state.assignment.goal, state.assignment.start, state.device)
        if action.index is None:
            return action
        widget, index = state.view.widgets[action.index], state.view.order.index(action.index)
        return replace(action, target=widget.text, index=index)

    def grade(self, action: Action) -> float:
        """1.0 if the solver needs fewer actions after ``action`` than before, else 0.0.

        An action that ends the episode is right only if the solver would end it in the same way. It
        is therefore wrong to declare a task infeasible before opening the list that lacks the
        record, although the success check accepts it.
        """
        state = self._running
        assignment = state.assignment
        if action.action_type == "status":
            right = solve(assignment.goal, assignment.start, state.device)
            return float(right.goal_status == action.goal_status)
        after = state.device.clone()
        self._operate(after, state.view, action)
        return float(_steps_left(assignment, after) < self.distance())

    def distance(self) -> int:
        """Number of actions the reference solver still needs, the final ``status`` included."""
        state = self._running
        if self._graded is None or self._graded[0] is not state:
            self._graded = state, _steps_left(state.assignment, state.device)
        return self._graded[1]

    @property
    def _running(self) -> State:
        """The state of the running episode. Raises ``EnvironmentFault`` if there is none."""
        _ = self.progress
        return self.state

    def _operate(self, device: Device, seen: View, action: Action) -> str:
        """Apply an action to a device, shown as ``seen``. Returns a note if it is invalid."""
        at = seen.find(action)
        if at is None and action.action_type in POINTING:
            device.toast = ""
            where = "element there" if action.index is None else f"element {action.index}"
            return f"no {where}: the screen has {len(seen.elements)} elements"
        return act(device, None if at is None else seen.widgets[seen.order[at]], action)


def _steps_left(assignment: Assignment, device: Device) -> int:
    """Number of actions that the reference solver needs from a device on."""
    now = device.clone()
    for done in range(1, UNREACHABLE):
        action = solve(assignment.goal, assignment.start, now)
        if action.action_type == "status":
            return done
        act(now, None if action.index is None else widgets(now)[action.index], action)
    return UNREACHABLE


def _success(state: State, declared: Action) -> bool:
    goal, device = state.assignment.goal, state.device
    if declared.goal_status != ("infeasible" if goal.infeasible else "complete"):
        return False
    return not check(goal, state.assignment.start, device) and goal.answered(device)


def act(device: Device, widget: Widget | None, action: Action) -> str:
    """Apply an action, which may point at a widget. Returns a note if the action is invalid."""
    kind = action.action_type
    note: str | None = NOTHING
    device.toast = ""
    if widget is not None and kind in POINTING:
        note = _point(device, widget, action)
    elif kind in ("navigate_back", "navigate_home"):
        note = "" if device.stack else "already at home"
        device.show(device.stack[:-1] if kind == "navigate_back" else ())
    elif kind == "open_app":
        app = (action.app_name or "").casefold().strip()
        note = "" if app in device.installed else f"no app {app!r}"
        if not note:
            device.show((Screen(app),))
    elif kind == "answer":
        device.answer, note = action.text, None
    elif kind in ("scroll", "swipe"):
        note = _scroll(device, action)
    return note or ""


def _point(device: Device, widget: Widget, action: Action) -> str | None:
    if action.action_type == "input_text":
        if widget.field is None:
            return f"{widget.role} “{widget.text}” takes no text"
        before = device.draft.get(widget.field, "") if action.clear_text is False else ""
        device.fill_in(widget.field, " ".join(f"{before}{action.text or ''}".split()))
        return None
    if action.action_type == "select":
        return f"{widget.role} “{widget.text}” has no options to select from"
    return NOTHING if widget.effect is None else widget.effect.apply(device)


def _scroll(device: Device, action: Action) -> str:
    forward = action.direction in ("down", "right")
    if action.action_type == "swipe":  # the finger moves opposite to the view
        forward = not forward
    before, device.page = device.page, device.page + (1 if forward else -1)
    shown = widgets(device)
    if shown[0].scrollable or not any(widget.scrollable for widget in shown):
        device.page = before
        return "nothing to scroll there"
    return ""
