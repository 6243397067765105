"""Environments of Gymnasium and PettingZoo (extra ``gym``): theirs as ours, and ours as theirs.

lake = from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False))
episodes = await rollout_many(lake, team, [("FrozenLake-v1", seed) for seed in range(10)])

env = GymView(PhoneEnvironment, tasks=["contacts-add"])
observation, info = env.reset(seed=7)
action = env.action_space.sample(info["action_mask"])
observation, reward, terminated, truncated, info = env.step(action)
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from random import Random
from typing import Any, ClassVar, TypeVar

from swarm_ui.action import Action
from swarm_ui.environment import Environment, check_factory
from swarm_ui.environments.base import Done, Episodic, as_png
from swarm_ui.environments.check import choices
from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra
from swarm_ui.observation import Element, Observation, render

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingExtra("gym", "Gymnasium and PettingZoo", error.name or "gymnasium") from None

MOST_TEXT = 65_536
"""Maximum number of characters of a goal or a screen. Characters outside ASCII are written as
``\\u20ac``."""
_CHARACTERS = "".join(map(chr, range(32, 127))) + "\n"
_WORD = re.compile(r"\w(?:[\w@.,:/'-]*\w)?")
_WAIT = Action(action_type="wait")
_COLOURED = re.compile(r"\x1b\[[\d;]+m(.*?)\x1b\[0m")
"""A coloured part of a terminal's text, such as the place of the player."""

Infos = dict[str, Any]
T = TypeVar("T")


class _Text(str):
    """A text with the ``dtype`` of its space, which PettingZoo's ``api_test`` compares."""

    __slots__ = ()
    dtype = str


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
        make: makes the environment, which runs on an event loop in a thread of its own.
        tasks: tasks to choose from; all by default.
        seeds: seeds of episodes to choose from.
        most_actions: size of the action space.
    """

    def __init__(
        self,
        make: Callable[[], Environment],
        *,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        most_actions: int = 1_024,
    ) -> None:
        check_factory(make)
        self._seeds = seeds
        self._offered: list[Action] = []
        text = spaces.Text(max_length=MOST_TEXT, min_length=0, charset=_CHARACTERS)
        self.observation_space = spaces.Dict({"goal": text, "app": text, "screen": text})
        self.action_space = spaces.Discrete(most_actions)
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

    def reset(
        self, *, seed: int | None = None, options: Infos | None = None
    ) -> tuple[dict[str, Any], Infos]:
        super().reset(seed=seed)
        task = self._tasks[int(self.np_random.integers(len(self._tasks)))]
        episode = self._seeds[int(self.np_random.integers(len(self._seeds)))]
        chosen = {"task": task, "episode": episode, **(options or {})}
        task, episode = str(chosen["task"]), int(chosen["episode"])
        screen = self._wait(self._env.reset(task=task, seed=episode))
        return self._shown(screen, "", over=False, task=task, episode=episode)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, Infos]:
        meant, count = self.action_of(action), len(self._offered)
        step = self._wait(self._env.step(meant or _WAIT))
        if step.fault is not None:
            raise EnvironmentFault(f"{self._env.name}: {step.fault}")
        note = step.note if meant else f"no action {action}: the screen offers {count}"
        seen, info = self._shown(step.observation, note, over=step.ended)
        return seen, step.reward, step.terminated, step.truncated, info

    def action_of(self, number: Any) -> Action | None:
        """The action of an index; ``None`` if the screen offers none."""
        return self._offered[int(number)] if 0 <= int(number) < len(self._offered) else None

    def close(self) -> None:
        if not self._loop.is_closed():
            try:
                self._wait(self._env.close())
            finally:
                self._end()

    def _shown(
        self, screen: Observation, note: str, *, over: bool, **more: object
    ) -> tuple[dict[str, Any], Infos]:
        """A screen in the spaces of Gymnasium, and its infos."""
        self._offered = [] if over else list(choices(screen, _phrases(screen.goal)))
        count, room = len(self._offered), int(self.action_space.n)  # type: ignore[attr-defined]
        if count > room:
            raise ConfigError(
                f"{self._env.name}: the screen offers {count} actions and there is room for "
                f"{room}: pass most_actions={count} or more"
            )
        mask = np.zeros(room, np.int8)
        mask[:count] = 1
        texts = {"goal": screen.goal, "app": screen.app, "screen": render(screen)}
        seen = {name: _plain(text) for name, text in texts.items()}
        if any(len(text) > MOST_TEXT for text in seen.values()):
            raise ConfigError(f"{self._env.name}: the screen has more than {MOST_TEXT} characters")
        told = {"observation": screen, "actions": tuple(self._offered), "action_mask": mask}
        return seen, {**told, "note": note, **more}

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


def _phrases(goal: str) -> list[str]:
    """Texts that a goal may ask to type: its quoted parts, then its runs of up to three words."""
    quoted, words = re.findall(r"[\"“‘']([^\"”’']+)[\"”’']", goal), _WORD.findall(goal)
    starts = range(len(words))
    runs = [" ".join(words[k : k + n]) for n in (1, 2, 3) for k in starts if k + n <= len(words)]
    return list(dict.fromkeys((*quoted, *runs)))


async def _made(make: Callable[[], Environment]) -> Environment:
    return make()  # on the event loop


def _plain(text: str) -> _Text:
    return _Text(
        "".join(c if c in _CHARACTERS else c.encode("unicode_escape").decode("ascii") for c in text)
    )


class TeamView(ParallelEnv):  # type: ignore[misc]  # it brings no types
    """A PettingZoo environment: agents with one screen propose actions, the one that most of them
    propose is done (in a tie, that of the first of them), and all get the reward.

    An agent's observation is ``{"observation": ..., "action_mask": ...}`` with the spaces and
    actions of :class:`GymView`. Invalid proposals do not count; if all are invalid, the step is
    lost. ``infos`` contain the proposals, the decision and the note.

    Args:
        make: makes the environment.
        agents: their number.
        options: ``tasks``, ``seeds`` and ``most_actions`` of ``GymView``.
    """

    metadata: ClassVar[Infos] = {"name": "swarm_ui_team_v0", "render_modes": []}
    render_mode = None

    def __init__(self, make: Callable[[], Environment], *, agents: int = 4, **options: Any) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(agents)]
        self.agents: list[str] = []
        self._view = view = GymView(make, **options)
        room = int(view.action_space.n)  # type: ignore[attr-defined]
        mask = spaces.Box(0, 1, (room,), np.int8)
        space = {"observation": view.observation_space, "action_mask": mask}
        self.observation_spaces = {name: spaces.Dict(space) for name in self.possible_agents}
        self.action_spaces = {name: spaces.Discrete(room) for name in self.possible_agents}
        self.observation_space = self.observation_spaces.__getitem__
        self.action_space = self.action_spaces.__getitem__

    def reset(
        self, seed: int | None = None, options: Infos | None = None
    ) -> tuple[dict[str, Any], dict[str, Infos]]:
        seen, info = self._view.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._each(seen, info), {agent: {**info} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        live, view = list(self.agents), self._view
        read = {agent: view.action_of(actions[agent]) for agent in live if agent in actions}
        proposals = {agent: action for agent, action in read.items() if action is not None}
        votes = Counter(int(actions[agent]) for agent in proposals)
        number = votes.most_common(1)[0][0] if votes else -1  # of equals, the first
        told = {"decision": view.action_of(number) or _WAIT, "proposals": proposals}
        seen, *ends, info = view.step(number)
        lost = {agent for agent, action in read.items() if action is None}
        infos = {agent: {**info, **told, "lost": agent in lost} for agent in live}
        shown = self._each(seen, info)
        if any(ends[1:]):
            self.agents = []
        return (shown, *(dict.fromkeys(live, value) for value in ends), infos)

    def close(self) -> None:
        self.agents = []
        self._view.close()

    def _each(self, seen: dict[str, Any], info: Infos) -> dict[str, Any]:
        shown = {"observation": seen, "action_mask": info["action_mask"]}
        return dict.fromkeys(self.agents, shown)


def from_gymnasium(
    make: Callable[[], gymnasium.Env[Any, Any]],
    *,
    goal: str = "",
    labels: Sequence[str] = (),
    score: Callable[[float], float] | None = None,
) -> Callable[[], Environment]:
    """A Gymnasium environment as one of ours: a function that makes it.

    Each discrete action is a button; a ``Text`` action is a field to type into. The screen shows
    what the environment renders as text (``render_mode="ansi"``), else its observation; with
    ``render_mode="rgb_array"`` also as a picture. Actions outside ``info["action_mask"]``, if there
    is one, are not offered. The only task is the environment's id. A reward that is not 0 is told
    in the note. The budget is the environment's own limit, or 100 actions.

    Args:
        make: makes the environment, such as ``lambda: gymnasium.make("FrozenLake-v1")``.
        goal: what the agents are asked to do; by default what the observation has as ``goal`` or
            ``mission``, or else to solve the task.
        labels: the names of the actions in their order, such as ``("left", "down")``.
        score: from the sum of an episode's rewards to a number in [0, 1], where 1 is success; by
            default the sum itself.

    Raises:
        ConfigError: on the first use, if the actions are neither ``Discrete`` nor ``Text``; at the
            end of an episode, if its score is not in [0, 1].
    """
    return partial(_Taken, make, goal, labels, score)


class _Taken(Episodic):
    """A Gymnasium environment; see :func:`from_gymnasium`."""

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        goal: str,
        labels: Sequence[str],
        score: Callable[[float], float] | None,
    ) -> None:
        self._env = env = make()
        space = env.action_space
        if not isinstance(space, spaces.Discrete | spaces.Text):
            raise ConfigError(
                f"from_gymnasium: the actions of {env} are {space}; wrap it so that they are "
                "Discrete or Text"
            )
        self._space = space
        self.tasks = (env.spec.id if env.spec else type(env.unwrapped).__name__,)
        self.budget = (env.spec.max_episode_steps if env.spec else None) or 100
        self._goal, self._labels, self._score = goal, labels, score

    @property
    def name(self) -> str:
        return f"gymnasium ({self.tasks[0]})"

    def begin(self, task: str, rng: Random) -> str:
        self._seen, self._info = self._env.reset(seed=self.seed)
        self._total = 0.0
        seen = self._seen if isinstance(self._seen, dict) else {}
        return self._goal or str(seen.get("goal") or seen.get("mission") or f"solve {task}")

    def screen(self) -> Observation:
        shown = self._env.render() if self._env.render_mode in ("ansi", "rgb_array") else None
        told = str(self._seen)
        if isinstance(shown, str):
            told = _COLOURED.sub(r"[\1]", shown)
        elif isinstance(self._seen, dict):
            told = "\n".join(f"{name}: {value}" for name, value in self._seen.items())
        lines = [Element.line(line) for line in told.splitlines() if line.strip()]
        self._first = len(lines)
        if isinstance(self._space, spaces.Text):
            inputs = [Element.field("action")]
        else:
            places = np.flatnonzero(self._info.get("action_mask", np.ones(self._space.n)))
            self._numbers = places + self._space.start
            known = dict(enumerate(self._labels or map(str, self._info.get("actions", ()))))
            inputs = [Element.button(known.get(p, f"action {p}")) for p in places.tolist()]
        png = as_png(shown) if isinstance(shown, np.ndarray) else None
        return Observation(goal="", elements=(*lines, *inputs), png=png)

    def act(self, action: Action, element: Element) -> Done | str:
        given: Any = action.text
        if given is None:
            given = self._numbers[element.index - self._first]
        self._seen, reward, over, cut, self._info = self._env.step(given)
        self._total += float(reward)
        note = f"reward {reward:g}" if reward else ""
        if not (over or cut):
            return note
        score = self._total if self._score is None else self._score(self._total)
        if over and not 0.0 <= score <= 1.0:
            raise ConfigError(
                f"from_gymnasium: an episode of {self.tasks[0]} scores {score:g}; pass score=, a "
                "function from the sum of its rewards to a number in [0, 1]"
            )
        return Done(score, note) if over or score == 1.0 else Done(0.0, note, truncated=True)

    async def close(self) -> None:
        await super().close()
        self._env.close()
