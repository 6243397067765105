"""The base class of all wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable, Step, checker_version
from swarm_ui.observation import Observation


class Wrapper:
    """Passes all calls on to ``env``.

    A wrapper has ``snapshot`` and ``restore`` only if the inner environment is
    :class:`Restorable`, and ``expert`` and ``grade`` only if it is :class:`Graded`, so
    ``isinstance`` gives the same answer for both. ``start`` is passed on too.
    """

    def __init__(self, env: Environment) -> None:
        self.env: Any = env
        # Set on the object, because it depends on ``env``.
        if isinstance(env, Restorable):
            vars(self).update(snapshot=self._snapshot, restore=self._restore)
        if isinstance(env, Graded):
            vars(self).update(expert=self._expert, grade=self._grade)
        if hasattr(env, "start") and not hasattr(self, "start"):  # it runs in its own process
            vars(self).update(start=env.start)

    @property
    def name(self) -> str:
        return str(self.env.name)

    @property
    def checker(self) -> int:
        return checker_version(self.env)

    @property
    def tasks(self) -> Sequence[str]:
        tasks: Sequence[str] = self.env.tasks
        return tasks

    @property
    def innermost(self) -> Environment:
        """The environment without any wrapper."""
        env: Environment = self.env
        while isinstance(env, Wrapper):
            env = env.env
        return env

    async def reset(self, *, task: str, seed: int) -> Observation:
        screen: Observation = await self.env.reset(task=task, seed=seed)
        return screen

    async def step(self, action: Action) -> Step:
        step: Step = await self.env.step(action)
        return step

    async def close(self) -> None:
        await self.env.close()

    def _snapshot(self) -> object:
        return self.env.snapshot()

    def _restore(self, state: object) -> Observation:
        screen: Observation = self.env.restore(state)
        return screen

    def _expert(self) -> Action:
        action: Action = self.env.expert()
        return action

    def _grade(self, action: Action) -> float:
        return float(self.env.grade(action))
