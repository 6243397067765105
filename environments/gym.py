"""Any environment as one of Gymnasium or PettingZoo (extra ``gym``).

env = GymView(PhoneEnvironment, tasks=["contacts-add"])
observation, info = env.reset(seed=7)
action = env.action_space.sample(info["action_mask"])
observation, reward, terminated, truncated, info = env.step(action)
"""

from __future__ import annotations

import asyncio
import io
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step, check_factory
from swarm_ui.environments.action_lists import choices, phrases
from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra
from swarm_ui.observation import Observation, render

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingExtra("gym", "Gymnasium and PettingZoo views", error.name or "gymnasium") from None

MOST_TEXT = 65_536
"""Maximum number of characters of a goal or a screen. Characters outside ASCII are written as
``\\u20ac``."""
_CHARACTERS = "".join(map(chr, range(32, 127))) + "\n"
_WAIT = Action(action_type="wait")

Make = Callable[[], Environment]
Infos = dict[str, Any]
T = TypeVar("T")


class _Text(str):
    """A text with the ``dtype`` of its space, which PettingZoo's ``api_test`` compares."""

    __slots__ = ()
    dtype = str


class _Player:
    """The part that both views share: an environment on an event loop in another thread, the
    choice of episodes, and screens and actions in the spaces of Gymnasium."""

    def __init__(
        self,
        make: Make,
        tasks: Sequence[str] | None,
        seeds: Sequence[int],
        size: int,
    ) -> None:
        check_factory(make)
        self._seeds, self._size = seeds, size
        self._offered: list[Action] = []
        self.screen: Observation | None = None
        text = spaces.Text(max_length=MOST_TEXT, min_length=0, charset=_CHARACTERS)
        self.space = spaces.Dict({"goal": text, "app": text, "screen": text})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            self._env = self._wait(self._made(make))
            self._tasks = tuple(self._env.tasks if tasks is None else tasks)
            if not self._tasks or not seeds:
                raise ConfigError(
                    f"{self._env.name}: there are no tasks or no seeds to choose from"
                )
        except BaseException:  # re-raised: the thread ends first, also on Ctrl-C
            self._end()
            raise

    async def _made(self, make: Make) -> Environment:
        return make()  # on the event loop

    def reset(self, draw: Callable[[int], int], options: Infos | None) -> Infos:
        """Start an episode, and return its infos. ``draw(n)`` draws a number below ``n``."""
        drawn: Infos = {"task": self._tasks[draw(len(self._tasks))]}
        drawn["episode"] = self._seeds[draw(len(self._seeds))]
        chosen = drawn | (options or {})
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

    def observation(self) -> dict[str, Any]:
        """The present screen. Raises ``ConfigError`` if it does not fit."""
        screen = self.screen
        assert screen is not None  # there was a reset
        texts = {"goal": screen.goal, "app": screen.app, "screen": render(screen)}
        plain = {
            name: "".join(
                c if c in _CHARACTERS else c.encode("unicode_escape").decode("ascii") for c in text
            )
            for name, text in texts.items()
        }
        if any(len(text) > MOST_TEXT for text in plain.values()):
            raise ConfigError(f"{self._env.name}: the screen has more than {MOST_TEXT} characters")
        return {name: _Text(text) for name, text in plain.items()}

    def mask(self) -> Any:
        """1 for each valid action."""
        mask = np.zeros(self._size, np.int8)
        mask[: len(self._offered)] = 1
        return mask

    def close(self) -> None:
        """Close the environment and end the thread; may be called twice."""
        if not self._loop.is_closed():
            try:
                self._wait(self._env.close())
            finally:
                self._end()

    def _infos(self, screen: Observation, note: str, *, over: bool) -> Infos:
        self.screen = screen
        self._offered = [] if over else choices(screen, phrases(screen.goal))
        if len(self._offered) > self._size:
            raise ConfigError(
                f"{self._env.name}: the screen offers {len(self._offered)} actions and there is "
                f"room for {self._size}: pass most_actions={len(self._offered)} or more"
            )
        return {"observation": screen, "actions": tuple(self._offered), "note": note}

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


class GymView(gymnasium.Env[dict[str, Any], Any]):
    """An environment behind Gymnasium's interface.

    Observations are dictionaries of texts: ``goal``, ``app`` and ``screen``. An action is an index
    into ``info["actions"]``, the actions of the present screen; ``info["action_mask"]`` marks the
    valid indices. Any other costs a step, and ``info["note"]`` has the reason. A fault raises
    ``EnvironmentFault``; it is never a reward of 0. ``info["observation"]`` is the complete
    observation.

    ``reset(seed=...)`` seeds the choice of task and episode; ``reset(options={"task": ...,
    "episode": 7})`` sets them.

    Args:
        make: makes the environment.
        tasks: tasks to choose from; all by default.
        seeds: seeds of episodes to choose from.
        most_actions: size of the action space.
        render_mode: ``"ansi"``: the screen as text; ``"rgb_array"``: its screenshot.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        make: Make,
        *,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        most_actions: int = 1_024,
        render_mode: Literal["ansi", "rgb_array"] | None = None,
    ) -> None:
        self.render_mode = render_mode
        self._player = _Player(make, tasks, seeds, most_actions)
        self.observation_space = self._player.space
        self.action_space = spaces.Discrete(most_actions)

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
        return render(screen) if self.render_mode == "ansi" else _picture(screen)

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
        agents: their number.
        tasks, seeds, most_actions: the same as in ``GymView``.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "swarm_ui_team_v0", "render_modes": []}
    render_mode = None

    def __init__(
        self,
        make: Make,
        *,
        agents: int = 4,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        most_actions: int = 1_024,
    ) -> None:
        if agents < 1:
            raise ConfigError(f"TeamView: 'agents' must be >= 1, got {agents}")
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.agents: list[str] = []
        self._rng = random.Random()
        self._player = _Player(make, tasks, seeds, most_actions)
        mask = spaces.Box(0, 1, (most_actions,), np.int8)
        space = {"observation": self._player.space, "action_mask": mask}
        self.observation_spaces = {name: spaces.Dict(space) for name in self.possible_agents}
        self.action_spaces = {n: spaces.Discrete(most_actions) for n in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Infos | None = None
    ) -> tuple[dict[str, Any], dict[str, Infos]]:
        if seed is not None:
            self._rng = random.Random(seed)
        info = self._player.reset(self._rng.randrange, options)
        self.agents = list(self.possible_agents)
        return self._shown(), {agent: dict(info) for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
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
        ends = (step.reward, step.terminated, step.truncated)
        return (shown, *(dict.fromkeys(live, value) for value in ends), infos)

    def close(self) -> None:
        self.agents = []
        self._player.close()

    def _shown(self) -> dict[str, Any]:
        seen = self._player.observation()
        return {
            agent: {"observation": seen, "action_mask": self._player.mask()}
            for agent in self.agents
        }


def _picture(screen: Observation) -> Any:
    """The screenshot as an array ``[height, width, 3]``."""
    if screen.png is None:
        raise ConfigError("the environment has no screenshots: turn them on when you make it")
    from PIL import Image

    with Image.open(io.BytesIO(screen.png)) as image:
        return np.asarray(image.convert("RGB"), np.uint8).copy()
