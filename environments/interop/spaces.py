"""Screens and actions in Gymnasium's spaces, for both views."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import msgspec

from swarm_ui.action import Action, Unparsed, parse_action
from swarm_ui.environments.action_choices import choices
from swarm_ui.environments.interop.blocking import BlockingEnvironment, Make
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.observation import Bounds, Element, Observation, Role, render

try:
    import numpy as np
    from gymnasium import spaces
except ImportError as error:
    raise MissingExtra("gym", "Gymnasium and PettingZoo views", error.name or "gymnasium") from None

ROLES: tuple[str, ...] = get_args(Role)
COLUMNS = (
    *("role", "left", "top", "right", "bottom", "clickable", "editable", "enabled", "focused"),
    *("scrollable", "checked", "selected"),
)
"""Columns of the array of elements. ``role`` counts from 1 in the order of ``Role``; rows without
an element are zero. ``checked`` and ``selected`` are 0 for no such state, 1 for off, 2 for on.
Unknown bounds are -1."""
FARTHEST = 32_767
"""Larger bounds are clipped to this value."""
_CHARACTERS = "".join(map(chr, range(32, 127))) + "\n"
WAIT = Action(action_type="wait")
ActionKind = Literal["index", "json"]


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of the spaces. A screen that does not fit is an error; nothing is cut."""

    elements: int = 128
    text: int = 16_384
    """Maximum number of characters of a goal or a screen. Characters outside ASCII are written
    as ``\\u20ac``."""
    actions: int = 1_024
    screenshot: tuple[int, int] | None = None
    """Width and height of the picture in the observation; ``None``: no picture."""


class _SpaceText(str):
    """A text of an observation, with the ``dtype`` of its space. PettingZoo's ``api_test`` compares
    the two."""

    __slots__ = ()
    dtype = str


class ScreenSpace:
    """Observations as a dictionary: ``goal``, ``app`` and ``screen`` as text, ``elements`` as an
    array ``[elements, len(COLUMNS)]``, and ``screenshot`` ``[height, width, 3]`` if asked for."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        text = spaces.Text(max_length=sizes.text, min_length=0, charset=_CHARACTERS)
        shape = (sizes.elements, len(COLUMNS))
        parts: dict[str, spaces.Space[Any]] = {
            "goal": text,
            "app": text,
            "screen": text,
            "elements": spaces.Box(-FARTHEST, FARTHEST, shape, np.int32),
        }
        if sizes.screenshot is not None:
            width, height = sizes.screenshot
            parts["screenshot"] = spaces.Box(0, 255, (height, width, 3), np.uint8)
        self.space = spaces.Dict(parts)

    def encode(self, screen: Observation) -> dict[str, Any]:
        """Encode a screen. Raises ``ConfigError`` if it does not fit."""
        found: dict[str, Any] = {
            "goal": self._text(screen.goal, "goal"),
            "app": self._text(screen.app, "app"),
            "screen": self._text(render(screen), "screen"),
            "elements": self._rows(screen.elements),
        }
        if self._sizes.screenshot is not None:
            found["screenshot"] = picture(screen, self._sizes.screenshot)
        return found

    def _text(self, text: str, what: str) -> _SpaceText:
        plain = "".join(c if c in _CHARACTERS else _escaped(c) for c in text)
        _fits(len(plain), self._sizes.text, f"characters of the {what}", "text")
        return _SpaceText(plain)

    def _rows(self, elements: Sequence[Element]) -> Any:
        _fits(len(elements), self._sizes.elements, "elements of the screen", "elements")
        rows = np.zeros((self._sizes.elements, len(COLUMNS)), np.int32)
        for element in elements:
            rows[element.index] = _row(element)
        return rows


class Episodes:
    """The common part of both views: the environment, and the choice of episodes, screens, actions.

    Args:
        view: name of the view, for errors.
        make, tasks, seeds, actions, texts, sizes: the same as in ``GymView``.
    """

    def __init__(
        self,
        view: str,
        make: Make,
        tasks: Sequence[str] | None,
        seeds: Sequence[int],
        actions: ActionKind,
        texts: Callable[[str], Sequence[str]],
        sizes: Sizes,
    ) -> None:
        self.screens = ScreenSpace(sizes)
        self.numbered = actions == "index"
        self._sizes, self._texts, self._seeds = sizes, texts, seeds
        self._offered: list[Action] = []
        self.screen: Observation | None = None
        """The present screen."""
        self.world = BlockingEnvironment(make)
        self._tasks = tuple(self.world.env.tasks if tasks is None else tasks)
        if not self._tasks or not seeds:
            self.world.close()
            raise ConfigError(f"{view}: there are no tasks or no seeds to choose from")

    def reset(self, draw: Callable[[int], int], options: dict[str, Any] | None) -> dict[str, Any]:
        """Start an episode, and return its infos. ``draw(n)`` draws a number below ``n``."""
        drawn, episode = self._tasks[draw(len(self._tasks))], self._seeds[draw(len(self._seeds))]
        task = str((options or {}).get("task", drawn))
        episode = int((options or {}).get("episode", episode))
        screen = self.world.reset(task=task, seed=episode)
        return {**self.show(screen, "", over=False), "task": task, "episode": episode}

    def show(self, screen: Observation, note: str, *, over: bool) -> dict[str, Any]:
        """Make a screen the current one, and return its infos. With ``over``, it has no actions."""
        self.screen = screen
        self._offered = [] if over else choices(screen, self._texts(screen.goal))
        _fits(len(self._offered), self._sizes.actions, "actions on the screen", "actions")
        return {"observation": screen, "actions": tuple(self._offered), "note": note}

    def action_space(self) -> spaces.Space[Any]:
        """A new space of actions. Each call makes one, with its own random generator."""
        if self.numbered:
            return spaces.Discrete(self._sizes.actions)
        return spaces.Text(max_length=self._sizes.text, min_length=0, charset=_CHARACTERS)

    def mask(self) -> dict[str, Any]:
        """``action_mask``: 1 for each valid index; empty for JSON actions."""
        if not self.numbered:
            return {}
        mask = np.zeros(self._sizes.actions, np.int8)
        mask[: len(self._offered)] = 1
        return {"action_mask": mask}

    def decode(self, given: object) -> tuple[Action | None, str]:
        """The action, or ``None`` and the reason why there is none."""
        if not self.numbered:
            found = parse_action(str(given))
            return (None, found.reason) if isinstance(found, Unparsed) else (found, "")
        number = int(given)  # type: ignore[call-overload]
        if 0 <= number < len(self._offered):
            return self._offered[number], ""
        return None, f"no action {number}: the screen offers {len(self._offered)}"


def picture(screen: Observation, size: tuple[int, int]) -> Any:
    """The screenshot as an array ``[height, width, 3]``, scaled to ``size`` (width, height)."""
    if screen.png is None:
        raise ConfigError("the environment has no screenshots: turn them on when you make it")
    from PIL import Image

    with Image.open(io.BytesIO(screen.png)) as image:
        return np.asarray(image.convert("RGB").resize(size), np.uint8).copy()


def drawn(screen: Observation) -> Any:
    """The screenshot in its own size, or a sketch of the elements if there is none."""
    from PIL import Image, ImageDraw

    if screen.png is not None:
        with Image.open(io.BytesIO(screen.png)) as image:
            return np.asarray(image.convert("RGB"), np.uint8).copy()
    boxes = [(e, e.bounds) for e in screen.elements if e.bounds is not None and _has_area(e.bounds)]
    width = min(FARTHEST, max([box[2] for _, box in boxes], default=0) + 10)
    height = min(FARTHEST, max([box[3] for _, box in boxes], default=0) + 10)
    sketch = Image.new("RGB", (max(width, 10), max(height, 10)), "white")
    pen = ImageDraw.Draw(sketch)
    for element, box in boxes:
        pen.rectangle(box, outline="black")
        # The built-in font has only Latin-1 letters.
        label = element.label.encode("latin-1", "replace").decode("latin-1")
        pen.text((box[0] + 3, box[1] + 3), label, "black")
    return np.asarray(sketch, np.uint8).copy()


def _has_area(bounds: Bounds) -> bool:
    """Whether left and top are not greater than right and bottom. The bounds of an element outside
    of the screen may violate this."""
    left, top, right, bottom = bounds
    return left <= right and top <= bottom


def _row(element: Element) -> list[int]:
    def state(value: bool | None) -> int:
        return 0 if value is None else 1 + value

    bounds = element.bounds or (-1, -1, -1, -1)
    return [
        1 + ROLES.index(element.role),
        *(max(-FARTHEST, min(FARTHEST, edge)) for edge in bounds),
        *(element.clickable, element.editable, element.enabled, element.focused),
        element.scrollable,
        *(state(element.checked), state(element.selected)),
    ]


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _fits(needed: int, room: int, what: str, setting: str) -> None:
    if needed > room:
        raise ConfigError(
            f"{needed} {what} do not fit into {room}: use Sizes({setting}={needed}) or more"
        )
