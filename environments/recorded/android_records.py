"""Demonstrations on Android devices, as records in the style of AndroidControl.

The records are JSON lines, with one episode on each line; get and convert the data yourself. These
fields are read; all others, such as screenshots, are ignored:

- ``goal``: text.
- ``episode_id``: a number or text, different for each record; by default the number of the record,
  counted from 0.
- ``split``: only episodes with ``"train"``, or without the field, are read.
- ``actions``: objects of AndroidWorld's actions. ``click`` and ``long_press`` have ``x`` and ``y``
  in pixels of the screen; ``input_text`` has ``text``, ``scroll`` ``direction``, ``open_app``
  ``app_name``; ``navigate_back``, ``navigate_home`` and ``wait`` have no other field.
- ``accessibility_trees``: the screen before each action, and optionally the screen after the last
  action. A screen is an ``AndroidAccessibilityForest`` as protobuf writes it to JSON
  (``MessageToDict(forest, preserving_proto_field_name=True)``): ``windows``, each with
  ``tree.nodes``. :mod:`swarm_ui.environments.androidworld.screen` reads them, as it reads the
  screen of a device. A flag that is missing is false, as protobuf leaves it out. If the nodes have
  no ``unique_id`` and ``child_ids``, each node is an element of its own.

The element of an action is the smallest element at its coordinates. For ``input_text`` it is the
focused field, or else the only field. An action without such an element is left out, together with
its screen. If the screen after the last action is recorded, the episode ends with
``status complete``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from swarm_ui.action import Action, Direction
from swarm_ui.environments.androidworld.screen import read_screen
from swarm_ui.environments.recorded.demonstrations import DemonstratedStep, Recordings
from swarm_ui.environments.recorded.teacher_forced import element_at
from swarm_ui.errors import ConfigError
from swarm_ui.files import MappedLines
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.rollout import Job

NAME = "android records (offline)"
_POINTING = ("click", "long_press", "double_tap")
_DONE = Action(action_type="status", goal_status="complete")


class _Box(msgspec.Struct, frozen=True):
    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0


class _Performable(msgspec.Struct, frozen=True):
    id: int = 0


class _Node(msgspec.Struct, frozen=True):
    """A node under protobuf's names, with protobuf's defaults."""

    unique_id: int = 0
    child_ids: list[int] = []
    labeled_by_id: int = 0
    text: str = ""
    content_description: str = ""
    hint_text: str = ""
    class_name: str = ""
    package_name: str = ""
    view_id_resource_name: str = ""
    bounds_in_screen: _Box = _Box()
    actions: list[_Performable] = []
    is_visible_to_user: bool = False
    is_clickable: bool = False
    is_long_clickable: bool = False
    is_checkable: bool = False
    is_checked: bool = False
    is_editable: bool = False
    is_enabled: bool = False
    is_focused: bool = False
    is_scrollable: bool = False
    is_selected: bool = False


class _Tree(msgspec.Struct, frozen=True):
    nodes: list[_Node] = []


class _Window(msgspec.Struct, frozen=True):
    tree: _Tree = _Tree()
    title: str = ""
    window_type: int | str = 0
    is_active: bool = False
    is_focused: bool = False


class _Forest(msgspec.Struct, frozen=True):
    windows: list[_Window] = []

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of what the nodes cover."""
        boxes = [n.bounds_in_screen for window in self.windows for n in window.tree.nodes]
        return max([0, *(b.right for b in boxes)]), max([0, *(b.bottom for b in boxes)])


class _Act(msgspec.Struct, frozen=True):
    action_type: str
    x: float | None = None
    y: float | None = None
    text: str | None = None
    direction: Direction | None = None
    app_name: str | None = None


class _Record(msgspec.Struct, frozen=True):
    goal: str
    actions: list[_Act]
    accessibility_trees: list[_Forest]
    episode_id: int | str | None = None
    split: str = "train"


def read_android_records(path: Path) -> Recordings:
    """Read a file of records. Episodes of other splits than ``train``, and those without a usable
    action, are left out.

    Raises:
        ConfigError: it cannot be read, a record is wrong (the message names it), or it has no
            usable episode for training.
    """
    found: dict[Job, Sequence[DemonstratedStep]] = {}
    places: dict[str, str] = {}
    lost = 0
    for where, record in _records(path):
        name = f"episode-{len(places) if record.episode_id is None else record.episode_id}"
        if name in places:
            raise ConfigError(
                f"{where}: '{name}' is also the episode of {places[name]}; give each record an "
                "'episode_id' of its own, or none of them"
            )
        places[name] = where
        if record.split == "train":
            steps, without_element = _steps(record, where)
            lost += without_element
            if steps:
                found[name, 0] = steps
    if not found:
        raise ConfigError(
            f"'{path}' has no usable episode of the split 'train' among its {len(places)}; {lost} "
            "actions have no element on their screen (see the module android_records)"
        )
    return Recordings(NAME, found.items(), left_out=len(places) - len(found))


def _records(path: Path) -> Iterator[tuple[str, _Record]]:
    """The records, each with its place for error messages."""
    try:
        lines = MappedLines(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    for index in range(len(lines)):
        where = f"{path}, record {index}"
        try:
            yield where, msgspec.json.decode(lines[index], type=_Record)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{where}: {error}") from error


def _steps(record: _Record, where: str) -> tuple[list[DemonstratedStep], int]:
    """The steps, and how many actions have no element on their screen."""
    acts, screens = record.actions, record.accessibility_trees
    if len(screens) not in (len(acts), len(acts) + 1) or not acts:
        raise ConfigError(
            f"{where}: {len(acts)} actions and {len(screens)} accessibility_trees; expected a "
            "screen for each action, and at most one after the last"
        )
    history: list[Past] = []
    steps: list[DemonstratedStep] = []
    for act, forest in zip(acts, screens, strict=False):
        screen = _observation(record.goal, forest, history)
        action = _action(act, screen, where)
        if action is not None:
            steps.append(DemonstratedStep(screen, action))
            history.append(screen.past(action))
    lost = len(acts) - len(steps)
    if len(screens) > len(acts) and steps:
        steps.append(DemonstratedStep(_observation(record.goal, screens[-1], history), _DONE))
    return steps, lost


def _observation(goal: str, forest: _Forest, history: Iterable[Past]) -> Observation:
    shown = read_screen(forest, forest.size)
    elements = tuple(replace(one, index=index) for index, one in enumerate(shown.elements))
    return Observation(goal=goal, elements=elements, app=shown.app, history=tuple(history))


def _action(act: _Act, screen: Observation, where: str) -> Action | None:
    """The action on an element of the screen, or ``None`` if the screen has no such element."""
    kind = act.action_type
    element: Element | None = None
    if kind in _POINTING:
        if act.x is None or act.y is None:
            raise ConfigError(f"{where}: {kind} has no 'x' and 'y'")
        element = element_at(screen, act.x, act.y)
    elif kind == "input_text":
        element = _field(screen)
    if element is None and (kind in _POINTING or kind == "input_text"):
        return None
    fields = {
        "action_type": kind,
        "text": act.text,
        "direction": act.direction,
        "app_name": act.app_name,
        "index": None if element is None else element.index,
        "target": None if element is None else element.label or None,
    }
    try:
        return msgspec.convert({k: v for k, v in fields.items() if v is not None}, Action)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: action {kind!r}: {error}") from error


def _field(screen: Observation) -> Element | None:
    fields = [element for element in screen.elements if element.editable]
    focused = [element for element in fields if element.focused]
    chosen = focused or fields
    return chosen[0] if len(chosen) == 1 else None
