"""Environments of Gymnasium as environments for agents (extra ``gym``).

lake = from_gymnasium(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False))
episodes = await rollout_many(lake, team, [("FrozenLake-v1", seed) for seed in range(10)])
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from swarm_ui.action import Action
from swarm_ui.environment import Environment
from swarm_ui.environments.base import Done, Episodic, as_png
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.observation import Element, Observation

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
except ImportError as error:
    raise MissingExtra("gym", "environments of Gymnasium", error.name or "gymnasium") from None

_COLOURED = re.compile(r"\x1b\[[\d;]+m(.*?)\x1b\[0m")
"""A coloured part of a terminal's text, such as the place of the player."""


def from_gymnasium(
    make: Callable[[], gymnasium.Env[Any, Any]],
    *,
    goal: str = "",
    labels: Sequence[str] = (),
    score: Callable[[float], float] | None = None,
    budget: int | None = None,
) -> Callable[[], Environment]:
    """A Gymnasium environment as one of ours: a function that makes it.

    Each discrete action is a button; a ``Text`` action is a field to type into. The screen shows
    what the environment renders as text (``render_mode="ansi"``), else its observation; with
    ``render_mode="rgb_array"`` also as a picture. Actions outside ``info["action_mask"]``, if there
    is one, are not offered. The only task is the environment's id. A reward that is not 0 is told
    in the note.

    Args:
        make: makes the environment, such as ``lambda: gymnasium.make("FrozenLake-v1")``.
        goal: what the agents are asked to do; by default what the observation has as ``goal`` or
            ``mission``, or else to solve the task.
        labels: the names of the actions in their order, such as ``("left", "down")``.
        score: from the sum of an episode's rewards to a number in [0, 1], where 1 is success; by
            default the sum itself.
        budget: maximum number of actions; by default the environment's own limit, or 100.

    Raises:
        ConfigError: on the first use, if the actions are neither ``Discrete`` nor ``Text``; at the
            end of an episode, if its score is not in [0, 1].
    """
    return partial(_Taken, make, goal, labels, score, budget)


class _Taken(Episodic):
    """A Gymnasium environment; see :func:`from_gymnasium`."""

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        goal: str,
        labels: Sequence[str],
        score: Callable[[float], float] | None,
        budget: int | None,
    ) -> None:
        self._env = env = make()
        space = env.action_space
        if not isinstance(space, spaces.Discrete | spaces.Text):
            raise ConfigError(
                f"from_gymnasium: the actions of {env} are {space}; wrap it so that they are "
                "Discrete or Text"
            )
        self._space = space
        limit = env.spec.max_episode_steps if env.spec else None
        self.tasks = (env.spec.id if env.spec else type(env.unwrapped).__name__,)
        self.budget = budget or limit or 100
        self._goal, self._labels, self._score = goal, labels, score

    @property
    def name(self) -> str:
        return f"gymnasium ({self.tasks[0]})"

    def begin(self, task: str, rng: random.Random) -> str:
        self._seen, self._info = self._env.reset(seed=self.seed)
        self._total = 0.0
        seen = self._seen if isinstance(self._seen, dict) else {}
        return self._goal or str(seen.get("goal") or seen.get("mission") or f"solve {task}")

    def screen(self) -> Observation:
        shown = self._env.render() if self._env.render_mode in ("ansi", "rgb_array") else None
        told = _COLOURED.sub(r"[\1]", shown) if isinstance(shown, str) else _told(self._seen)
        lines = [Element.line(line) for line in told.splitlines() if line.strip()]
        self._first = len(lines)
        if isinstance(self._space, spaces.Text):
            inputs = [Element.field("action")]
        else:
            mask = self._info.get("action_mask", np.ones(self._space.n))
            self._numbers = np.flatnonzero(mask) + self._space.start
            inputs = [
                Element.button(self._label(int(n - self._space.start))) for n in self._numbers
            ]
        png = as_png(shown) if isinstance(shown, np.ndarray) else None
        return Observation(goal="", elements=(*lines, *inputs), png=png)

    def act(self, action: Action, element: Element) -> Done | str:
        given = (
            action.text if action.text is not None else self._numbers[element.index - self._first]
        )
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

    def _label(self, number: int) -> str:
        known = self._labels or [str(action) for action in self._info.get("actions", ())]
        return known[number] if number < len(known) else f"action {number}"


def _told(seen: object) -> str:
    """An observation as lines of text."""
    if isinstance(seen, dict):
        return "\n".join(f"{name}: {value}" for name, value in seen.items())
    return str(seen)
