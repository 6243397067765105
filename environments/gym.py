"""Any environment as one of Gymnasium or PettingZoo (extra ``gym``).

env = GymView(PhoneEnvironment, tasks=["contacts-add"])
observation, info = env.reset(seed=7)
action = env.action_space.sample(info["action_mask"])
observation, reward, terminated, truncated, info = env.step(action)

lake = from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False))
episodes = await rollout_many(lake, team, [("FrozenLake-v1", seed) for seed in range(10)])
"""

from __future__ import annotations

import asyncio
import io
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Literal, TypeVar, get_args

import msgspec

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step, check_factory
from swarm_ui.environments.action_lists import choices, phrases
from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra
from swarm_ui.observation import Element, Observation, Role, render

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
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
_WAIT = Action(action_type="wait")

Make = Callable[[], Environment]
Infos = dict[str, Any]
T = TypeVar("T")


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of the spaces. A screen that does not fit is an error; nothing is cut."""

    elements: int = 128
    text: int = 16_384
    """Maximum number of characters of a goal or a screen. Characters outside ASCII are written
    as ``\\u20ac``."""
    actions: int = 1_024
    screenshot: tuple[int, int] | None = None
    """Width and height of the picture in the observation; ``None``: no picture."""


class _Text(str):
    """A text with the ``dtype`` of its space, which PettingZoo's ``api_test`` compares."""

    __slots__ = ()
    dtype = str


async def _made(make: Make) -> Environment:
    return make()


class _Player:
    """The part that both views share: an environment on an event loop in another thread, the
    choice of episodes, and screens and actions in the spaces of Gymnasium."""

    def __init__(
        self,
        make: Make,
        tasks: Sequence[str] | None,
        seeds: Sequence[int],
        texts: Callable[[str], Sequence[str]],
        sizes: Sizes,
    ) -> None:
        check_factory(make)
        self._seeds, self._texts, self._sizes = seeds, texts, sizes
        self._offered: list[Action] = []
        self.screen: Observation | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._env = self._wait(_made(make))
            self._tasks = tuple(self._env.tasks if tasks is None else tasks)
            if not self._tasks or not seeds:
                raise ConfigError(
                    f"{self._env.name}: there are no tasks or no seeds to choose from"
                )
        except BaseException:  # re-raised: the thread ends first, also on Ctrl-C
            self._end()
            raise

    @property
    def space(self) -> spaces.Dict:
        text = spaces.Text(max_length=self._sizes.text, min_length=0, charset=_CHARACTERS)
        shape = (self._sizes.elements, len(COLUMNS))
        parts: dict[str, spaces.Space[Any]] = dict.fromkeys(("goal", "app", "screen"), text)
        parts["elements"] = spaces.Box(-FARTHEST, FARTHEST, shape, np.int32)
        if self._sizes.screenshot is not None:
            width, height = self._sizes.screenshot
            parts["screenshot"] = spaces.Box(0, 255, (height, width, 3), np.uint8)
        return spaces.Dict(parts)

    def reset(self, draw: Callable[[int], int], options: Infos | None) -> Infos:
        """Start an episode, and return its infos. ``draw(n)`` draws a number below ``n``."""
        chosen = {
            "task": self._tasks[draw(len(self._tasks))],
            "episode": self._seeds[draw(len(self._seeds))],
            **(options or {}),
        }
        task, episode = str(chosen["task"]), int(chosen["episode"])
        screen = self._wait(self._env.reset(task=task, seed=episode))
        return {**self._infos(screen, "", over=False), "task": task, "episode": episode}

    def step(self, action: Action, note: str = "") -> tuple[Step, Infos]:
        step = self._wait(self._env.step(action))
        if step.fault is not None:
            raise EnvironmentFault(f"{self._env.name}: {step.fault}")
        return step, self._infos(step.observation, note or step.note, over=step.ended)

    def chosen(self, number: Any) -> tuple[Action | None, str]:
        """The action of a number, or ``None`` and the reason why there is none."""
        if 0 <= int(number) < len(self._offered):
            return self._offered[int(number)], ""
        return None, f"no action {number}: the screen offers {len(self._offered)}"

    def close(self) -> None:
        """Close the environment and end the thread; may be called twice."""
        if not self._loop.is_closed():
            try:
                self._wait(self._env.close())
            finally:
                self._end()

    def _wait(self, doing: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            doing.close()
            raise EnvironmentFault(f"{self._env.name}: the view was closed; make a new one")
        future = asyncio.run_coroutine_threadsafe(doing, self._loop)
        try:
            return future.result()
        except BaseException:  # re-raised: also Ctrl-C while waiting
            future.cancel()
            raise

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def observation(self) -> dict[str, Any]:
        """The present screen. Raises ``ConfigError`` if it does not fit."""
        screen = self.screen
        assert screen is not None  # there was a reset
        self._expect_room(len(screen.elements), "elements")
        rows = np.zeros((self._sizes.elements, len(COLUMNS)), np.int32)
        for element in screen.elements:
            rows[element.index] = _row(element)
        texts = {"goal": screen.goal, "app": screen.app, "screen": render(screen)}
        found: dict[str, Any] = {name: self._text(text) for name, text in texts.items()}
        found["elements"] = rows
        if self._sizes.screenshot is not None:
            found["screenshot"] = picture(screen, self._sizes.screenshot)
        return found

    def mask(self) -> Any:
        """1 for each valid action."""
        mask = np.zeros(self._sizes.actions, np.int8)
        mask[: len(self._offered)] = 1
        return mask

    def _infos(self, screen: Observation, note: str, *, over: bool) -> Infos:
        self.screen = screen
        self._offered = [] if over else choices(screen, self._texts(screen.goal))
        self._expect_room(len(self._offered), "actions")
        return {"observation": screen, "actions": tuple(self._offered), "note": note}

    def _text(self, text: str) -> _Text:
        plain = "".join(
            c if c in _CHARACTERS else c.encode("unicode_escape").decode("ascii") for c in text
        )
        self._expect_room(len(plain), "text")
        return _Text(plain)

    def _expect_room(self, needed: int, size: str) -> None:
        room = getattr(self._sizes, size)
        if needed > room:
            raise ConfigError(
                f"the screen needs {size}={needed} and has room for {room}: pass "
                f"sizes=Sizes({size}={needed}) or more"
            )


class GymView(gymnasium.Env[dict[str, Any], Any]):
    """An environment behind Gymnasium's interface.

    Observations are dictionaries: ``goal``, ``app`` and ``screen`` as text, ``elements`` as an
    array ``[elements, len(COLUMNS)]``, and ``screenshot`` ``[height, width, 3]`` if asked for. An
    action is an index into ``info["actions"]``, the actions of the present screen;
    ``info["action_mask"]`` marks the valid indices. Any other costs a step, and ``info["note"]``
    has the reason. A fault raises ``EnvironmentFault``; it is never a reward of 0.
    ``info["observation"]`` is the complete observation.

    ``reset(seed=...)`` seeds the choice of task and episode; ``reset(options={"task": ...,
    "episode": 7})`` sets them.

    Args:
        make: makes the environment.
        tasks: tasks to choose from; all by default.
        seeds: seeds of episodes to choose from.
        texts: a function from the goal to the texts that may be typed.
        sizes: the sizes of the spaces.
        render_mode: ``"ansi"``: the screen as text; ``"rgb_array"``: its screenshot.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        make: Make,
        *,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        texts: Callable[[str], Sequence[str]] = phrases,
        sizes: Sizes | None = None,
        render_mode: Literal["ansi", "rgb_array"] | None = None,
    ) -> None:
        self.render_mode = render_mode
        sizes = sizes or Sizes()
        self._player = _Player(make, tasks, seeds, texts, sizes)
        self.observation_space = self._player.space
        self.action_space = spaces.Discrete(sizes.actions)

    def reset(
        self, *, seed: int | None = None, options: Infos | None = None
    ) -> tuple[dict[str, Any], Infos]:
        super().reset(seed=seed)
        info = self._player.reset(lambda n: int(self.np_random.integers(n)), options)
        return self._player.observation(), {**info, "action_mask": self._player.mask()}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, Infos]:
        meant, lost = self._player.chosen(action)
        step, info = self._player.step(meant or _WAIT, lost)
        info["action_mask"] = self._player.mask()
        shown = self._player.observation()
        return shown, step.reward, step.terminated, step.truncated, info

    def render(self) -> Any:
        screen = self._player.screen
        if self.render_mode is None or screen is None:
            return None
        return render(screen) if self.render_mode == "ansi" else picture(screen)

    def close(self) -> None:
        self._player.close()


class TeamView(ParallelEnv):  # type: ignore[misc]  # it brings no types
    """A PettingZoo environment: agents with one screen propose actions, the one that most of them
    propose is done (in a tie, that of the first of them), and all get the reward.

    An agent's observation is ``{"observation": ..., "action_mask": ...}`` with the spaces and
    actions of :class:`GymView`. Invalid proposals do not count; if all are invalid, the step is
    lost. ``infos`` contain the proposals, the decision and the note.

    Args:
        make: makes the environment.
        agents: their number or their names.
        tasks, seeds, texts, sizes: the same as in ``GymView``.
        render_mode: ``"ansi"``: the screen as text.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "swarm_ui_team_v0",
        "render_modes": ["ansi"],
        "render_fps": 4,
    }

    def __init__(
        self,
        make: Make,
        *,
        agents: int | Sequence[str] = 4,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        texts: Callable[[str], Sequence[str]] = phrases,
        sizes: Sizes | None = None,
        render_mode: Literal["ansi"] | None = None,
    ) -> None:
        names = [f"agent_{i}" for i in range(agents)] if isinstance(agents, int) else list(agents)
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"TeamView: expected agents with different names, got {names}")
        sizes = sizes or Sizes()
        self.possible_agents = names
        self.agents: list[str] = []
        self.render_mode = render_mode
        self._rng = random.Random()
        self._player = _Player(make, tasks, seeds, texts, sizes)
        mask = spaces.Box(0, 1, (sizes.actions,), np.int8)
        space = {"observation": self._player.space, "action_mask": mask}
        self.observation_spaces = {name: spaces.Dict(space) for name in names}
        self.action_spaces = {name: spaces.Discrete(sizes.actions) for name in names}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Infos | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, Infos]]:
        if seed is not None:
            self._rng = random.Random(seed)
        info = self._player.reset(self._rng.randrange, options)
        self.agents = list(self.possible_agents)
        return self._shown(), {agent: dict(info) for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, dict[str, Any]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, Infos],
    ]:
        live = list(self.agents)
        read = {agent: self._player.chosen(actions[agent]) for agent in live if agent in actions}
        proposals = {agent: action for agent, (action, _) in read.items() if action is not None}
        counts = Counter(action.key for action in proposals.values())
        most = max(counts.values(), default=0)
        decision = next((a for a in proposals.values() if counts[a.key] == most), _WAIT)
        lost = "" if proposals else "no agent proposed a valid action"
        step, info = self._player.step(decision, lost)
        info |= {"decision": decision, "proposals": proposals}
        infos = {agent: {**info, "lost": read.get(agent, (None, ""))[1]} for agent in live}
        shown = self._shown()
        if step.ended:
            self.agents = []
        return (
            shown,
            dict.fromkeys(live, step.reward),
            dict.fromkeys(live, step.terminated),
            dict.fromkeys(live, step.truncated),
            infos,
        )

    def render(self) -> Any:
        screen = self._player.screen
        return None if self.render_mode is None or screen is None else render(screen)

    def close(self) -> None:
        self.agents = []
        self._player.close()

    def _shown(self) -> dict[str, dict[str, Any]]:
        player = self._player
        return {
            agent: {"observation": player.observation(), "action_mask": player.mask()}
            for agent in self.agents
        }


def picture(screen: Observation, size: tuple[int, int] | None = None) -> Any:
    """The screenshot as an array ``[height, width, 3]``, scaled to ``size`` (width, height)."""
    if screen.png is None:
        raise ConfigError("the environment has no screenshots: turn them on when you make it")
    from PIL import Image

    with Image.open(io.BytesIO(screen.png)) as image:
        plain = image.convert("RGB")
        return np.asarray(plain if size is None else plain.resize(size), np.uint8).copy()


def _row(element: Element) -> list[int]:
    states = (element.checked, element.selected)
    bounds = element.bounds or (-1, -1, -1, -1)
    return [
        1 + ROLES.index(element.role),
        *(max(-FARTHEST, min(FARTHEST, edge)) for edge in bounds),
        *(element.clickable, element.editable, element.enabled, element.focused),
        element.scrollable,
        *(0 if state is None else 1 + state for state in states),
    ]
