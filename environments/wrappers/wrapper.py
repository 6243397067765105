"""The base class of all wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable, Step, checker_version
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation


class _Snapshot(NamedTuple):
    """The state of a wrapper, and the snapshot of the inner environment."""

    own: Any
    present: Observation | None
    inner: object


class Wrapper:
    """Passes all calls on to ``env``.

    A wrapper has ``snapshot`` and ``restore`` only if the inner environment is
    :class:`Restorable`, and ``expert`` and ``grade`` only if it is :class:`Graded`, so
    ``isinstance`` gives the same answer for both. ``start`` is passed on too.
    """

    state: Any = None
    """What a subclass keeps of the running episode: a value that never changes, which snapshots
    hold."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.present: Observation | None = None
        """The screen of the running episode; ``None``: no episode is running."""
        # Set on the object, because it depends on ``env``.
        if isinstance(env, Restorable):
            vars(self).update(snapshot=self._snapshot, restore=self._restore)
        if isinstance(env, Graded):
            vars(self).update(expert=self._expert, grade=self._grade)
        if hasattr(env, "start") and not hasattr(self, "start"):  # it runs in its own process
            vars(self).update(start=env.start)

    @property
    def name(self) -> str:
        return self.env.name

    @property
    def checker(self) -> int:
        return checker_version(self.env)

    @property
    def tasks(self) -> Sequence[str]:
        return self.env.tasks

    @property
    def innermost(self) -> Environment:
        """The environment without any wrapper."""
        env: Environment = self.env
        while isinstance(env, Wrapper):
            env = env.env
        return env

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.present = None
        self.present = await self.env.reset(task=task, seed=seed)
        return self.present

    async def step(self, action: Action) -> Step:
        self.present = None  # there is no episode until the environment has answered
        step = await self.env.step(action)
        shown = self.shown(step.observation)
        self.present = None if step.ended else shown
        return replace(step, observation=shown)

    async def close(self) -> None:
        self.present = None
        await self.env.close()

    def running(self) -> Observation:
        """The present screen. Raises ``EnvironmentFault`` if no episode is running."""
        if self.present is None:
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        return self.present

    def shown(self, screen: Observation) -> Observation:
        """A screen of the inner environment as this wrapper shows it."""
        return screen

    def _snapshot(self) -> object:
        assert isinstance(self.env, Restorable)
        return _Snapshot(self.state, self.present, self.env.snapshot())

    def _restore(self, state: object) -> Observation:
        assert isinstance(self.env, Restorable)
        if not isinstance(state, _Snapshot):
            raise EnvironmentFault(
                f"{type(self).__name__}: restore expects its own snapshot, got "
                f"{type(state).__name__}"
            )
        screen = self.env.restore(state.inner)
        self.present, self.state = state.present, state.own
        return self.shown(screen)

    def _expert(self) -> Action:
        assert isinstance(self.env, Graded)
        return self.env.expert()

    def _grade(self, action: Action) -> float:
        assert isinstance(self.env, Graded)
        return self.env.grade(action)
