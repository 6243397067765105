"""An environment around another one that changes nothing: what the others are made from."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable, Step
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation


class Wrapper:
    """Passes everything on to ``env``.

    ``snapshot`` and ``restore`` are there only if the inner world is :class:`Restorable`,
    ``expert`` and ``grade`` only if it is :class:`Graded`: ``isinstance`` says of the wrapper what
    it says of the inner world. A subclass that remembers something of the episode gives it to
    :meth:`put_aside` and takes it back in :meth:`take_up`.
    """

    def __init__(self, env: Environment) -> None:
        self.env = env
        # On the object, since the class cannot know; protocols look at objects too.
        if isinstance(env, Restorable):
            vars(self).update(snapshot=self._snapshot, restore=self._restore)
        if isinstance(env, Graded):
            vars(self).update(expert=self._expert, grade=self._grade)

    @property
    def name(self) -> str:
        return self.env.name

    @property
    def tasks(self) -> Sequence[str]:
        return self.env.tasks

    @property
    def innermost(self) -> Environment:
        """The world itself, without any wrapper."""
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
        """What this wrapper remembers of the running episode; nothing that may change later."""
        return None

    def take_up(self, state: object) -> None:
        """Remember again what :meth:`put_aside` gave."""

    def shown(self, screen: Observation) -> Observation:
        """A screen of the inner world as this wrapper shows it."""
        return screen

    def _snapshot(self) -> object:
        assert isinstance(self.env, Restorable)
        return _Aside(self.put_aside(), self.env.snapshot())

    def _restore(self, state: object) -> Observation:
        assert isinstance(self.env, Restorable)
        if not isinstance(state, _Aside):
            raise EnvironmentFault(
                f"{type(self).__name__}: restore expects what snapshot() of it gave, got "
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


class _Aside:
    """A snapshot: the wrapper's own memory, and the inner world's."""

    __slots__ = ("inner", "own")

    def __init__(self, own: object, inner: object) -> None:
        self.own, self.inner = own, inner
