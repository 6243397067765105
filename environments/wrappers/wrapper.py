"""Base classes of all wrappers, and of wrappers that refuse actions; and a wrapper that limits the
number of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Graded, Restorable, Step, checker_version
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past

WAIT = Action(action_type="wait")


class _Snapshot(NamedTuple):
    """The state of a wrapper, and the snapshot of the inner environment."""

    own: object
    present: Observation | None
    inner: object


class Wrapper:
    """Passes all calls on to ``env``.

    A wrapper has ``snapshot`` and ``restore`` only if the inner environment is
    :class:`Restorable`, and ``expert`` and ``grade`` only if it is :class:`Graded`, so
    ``isinstance`` gives the same answer for both. ``start`` is passed on too. A subclass with
    state returns it in :meth:`put_aside` and restores it in :meth:`take_up`.
    """

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
        return _Snapshot(self.put_aside(), self.present, self.env.snapshot())

    def _restore(self, state: object) -> Observation:
        assert isinstance(self.env, Restorable)
        if not isinstance(state, _Snapshot):
            raise EnvironmentFault(
                f"{type(self).__name__}: restore expects its own snapshot, got "
                f"{type(state).__name__}"
            )
        screen = self.env.restore(state.inner)
        self.present = state.present
        self.take_up(state.own)
        return self.shown(screen)

    def _expert(self) -> Action:
        assert isinstance(self.env, Graded)
        return self.env.expert()

    def _grade(self, action: Action) -> float:
        assert isinstance(self.env, Graded)
        return self.env.grade(action)


class StepLimit(Wrapper):
    """Truncates an episode after ``steps`` steps, unless it ends before."""

    def __init__(self, env: Environment, steps: int) -> None:
        super().__init__(env)
        if steps < 1:
            raise ConfigError(f"StepLimit: 'steps' must be >= 1, got {steps}")
        self.steps = steps
        self._left = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self._left = self.steps
        return await super().reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        self.running()
        step = await super().step(action)
        self._left -= 1
        if self._left > 0 or step.ended:
            return step
        self.present = None
        return replace(step, truncated=True)

    def put_aside(self) -> object:
        return self._left

    def take_up(self, state: object) -> None:
        assert isinstance(state, int)
        self._left = state


class RefusalWrapper(Wrapper):
    """Calls :meth:`objection` before each action; a refused action is a lost step with a note.

    Instead of a refused action the environment gets ``wait``, so that it counts the lost step. The
    history shows the refused action.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._done = 0
        self._refused: Mapping[int, Past] = {}

    async def objection(self, action: Action, screen: Observation) -> str:
        """Why the action is refused, or an empty string."""
        raise NotImplementedError

    async def reset(self, *, task: str, seed: int) -> Observation:
        self._done, self._refused = 0, {}
        return await super().reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        screen = self.running()
        why = await self.objection(action, screen)
        if why:
            self._refused = {**self._refused, self._done: screen.past(action)}
        self._done += 1
        step = await super().step(WAIT if why else action)
        return replace(step, note=why or step.note)

    def shown(self, screen: Observation) -> Observation:
        past = list(screen.history)
        for place, refused in self._refused.items():
            if place < len(past) and past[place].action == WAIT:
                past[place] = refused
        return replace(screen, history=tuple(past))

    def put_aside(self) -> object:
        return self._done, self._refused

    def take_up(self, state: object) -> None:
        assert isinstance(state, tuple)
        self._done, self._refused = state
