"""The base of all wrappers: an environment that passes every call on."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable, Step, checker_version
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation


class Wrapper:
    """Passes everything on to ``env``.

    A wrapper has ``snapshot`` and ``restore`` only if the inner environment is
    :class:`Restorable`, and ``expert`` and ``grade`` only if it is :class:`Graded`, so
    ``isinstance`` gives the same answer for both. A subclass with a state of its own returns it in
    :meth:`put_aside` and restores it in :meth:`take_up`.
    """

    def __init__(self, env: Environment) -> None:
        self.env = env
        # Set on the object, because it depends on ``env``.
        if isinstance(env, Restorable):
            vars(self).update(snapshot=self._snapshot, restore=self._restore)
        if isinstance(env, Graded):
            vars(self).update(expert=self._expert, grade=self._grade)

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
        return await self.env.reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        return await self.env.step(action)

    async def close(self) -> None:
        await self.env.close()

    def put_aside(self) -> object:
        """The wrapper's own state of the running episode; it must not change later."""
        return None

    def take_up(self, state: object) -> None:
        """Restore a state that :meth:`put_aside` returned."""

    def shown(self, screen: Observation) -> Observation:
        """A screen of the inner environment as this wrapper shows it."""
        return screen

    def _snapshot(self) -> object:
        assert isinstance(self.env, Restorable)
        return _Snapshot(self.put_aside(), self.env.snapshot())

    def _restore(self, state: object) -> Observation:
        assert isinstance(self.env, Restorable)
        if not isinstance(state, _Snapshot):
            raise EnvironmentFault(
                f"{type(self).__name__}: restore expects its own snapshot, got "
                f"{type(state).__name__}"
            )
        screen = self.env.restore(state.inner)
        self.take_up(state.own)
        return self.shown(screen)

    def _expert(self) -> Action:
        assert isinstance(self.env, Graded)
        return self.env.expert()

    def _grade(self, action: Action) -> float:
        assert isinstance(self.env, Graded)
        return self.env.grade(action)


class _Snapshot:
    """The state of a wrapper, and the snapshot of the inner environment."""

    __slots__ = ("inner", "own")

    def __init__(self, own: object, inner: object) -> None:
        self.own, self.inner = own, inner
