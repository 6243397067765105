"""Any environment as a PettingZoo parallel environment: agents propose, a vote decides.

    from swarm_ui.environments.interop.pettingzoo_view import TeamView

    env = TeamView(PhoneEnvironment, agents=3)
    observations, infos = env.reset(seed=7)
    observations, rewards, terminations, truncations, infos = env.step(
        {agent: 0 for agent in env.agents}
    )

Needs the extra ``gym``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from swarm_ui.action import Action
from swarm_ui.environments.action_choices import phrases
from swarm_ui.environments.interop.blocking import Make
from swarm_ui.environments.interop.spaces import WAIT, ActionKind, Episodes, ScreenSpace, Sizes
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.observation import render

try:
    import numpy as np
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise MissingExtra("gym", "the PettingZoo view", error.name or "pettingzoo") from None

__all__ = ["Sizes", "TeamView", "majority"]

Vote = Callable[[Mapping[str, Action]], Action]
"""Chooses the action to do from the valid proposals by agent."""


def majority(proposals: Mapping[str, Action]) -> Action:
    """The act proposed most often; in a tie, the one that the first agent proposed."""
    ((most, _),) = Counter(action.key for action in proposals.values()).most_common(1)
    return next(action for action in proposals.values() if action.key == most)


class TeamView(ParallelEnv):  # type: ignore[misc]  # it brings no types
    """A team with one screen: a vote chooses one of the agents' actions, and all get the reward.

    An agent's observation is ``{"observation": ..., "action_mask": ...}``, without a mask if
    actions are JSON; spaces and actions are those of
    :class:`swarm_ui.environments.interop.gymnasium_view.GymView`.
    Invalid proposals do not count; if all are invalid, the step is lost. ``infos`` contain the
    proposals, the decision and the note.

    Args:
        make: makes the environment.
        agents: their number or their names.
        vote: chooses the action; the majority by default.
        tasks, seeds, actions, texts, sizes, render_mode: the same as in ``GymView``.
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
        vote: Vote = majority,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        actions: ActionKind = "index",
        texts: Callable[[str], Sequence[str]] = phrases,
        sizes: Sizes | None = None,
        render_mode: Literal["ansi"] | None = None,
    ) -> None:
        names = [f"agent_{i}" for i in range(agents)] if isinstance(agents, int) else list(agents)
        if not names or len(set(names)) < len(names):
            raise ConfigError(
                f"TeamView: expected one or more agents with different names, got {names}"
            )
        sizes = sizes or Sizes()
        self.possible_agents = names
        self.agents: list[str] = []
        self.render_mode = render_mode
        self._vote = vote
        self._rng = random.Random()
        self._episodes = Episodes("TeamView", make, tasks, seeds, actions, texts, sizes)
        mask: dict[str, spaces.Space[Any]] = {}
        if self._episodes.numbered:
            mask["action_mask"] = spaces.Box(0, 1, (sizes.actions,), np.int8)
        self.observation_spaces = {
            name: spaces.Dict({"observation": ScreenSpace(sizes).space, **mask}) for name in names
        }
        self.action_spaces = {name: self._episodes.action_space() for name in names}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        if seed is not None:
            self._rng = random.Random(seed)
        infos = self._episodes.reset(self._rng.randrange, options)
        self.agents = list(self.possible_agents)
        return self._for_each(infos)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, dict[str, Any]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        live, decode = list(self.agents), self._episodes.decode
        read = {agent: decode(actions[agent]) for agent in live if agent in actions}
        proposals = {agent: action for agent, (action, _) in read.items() if action is not None}
        decision = self._vote(proposals) if proposals else WAIT
        step = self._episodes.world.step(decision)
        note = step.note if proposals else "no agent proposed a valid action"
        info = self._episodes.show(step.observation, note, over=step.ended)
        observations, infos = self._for_each({**info, "decision": decision, "proposals": proposals})
        for agent, (_, lost) in read.items():
            infos[agent]["lost"] = lost
        if step.ended:
            self.agents = []
        return (
            observations,
            dict.fromkeys(live, step.reward),
            dict.fromkeys(live, step.terminated),
            dict.fromkeys(live, step.truncated),
            infos,
        )

    def render(self) -> Any:
        screen = self._episodes.screen
        return None if self.render_mode is None or screen is None else render(screen)

    def close(self) -> None:
        self.agents = []
        self._episodes.world.close()

    def _for_each(
        self, info: dict[str, Any]
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """The observation and the infos of every agent."""
        encode, mask = self._episodes.screens.encode, self._episodes.mask
        screen = info["observation"]
        observations = {agent: {"observation": encode(screen), **mask()} for agent in self.agents}
        return observations, {agent: dict(info) for agent in self.agents}
