"""The contract between agents and an environment:

    observation = await env.reset(task="contacts-add", seed=7)
    step = await env.step(action)          # until step.ended
    await env.close()

``terminated`` (the task is over), ``truncated`` (the budget is used up) and ``fault`` (the
environment or an endpoint failed) are separate. An episode with a fault is masked out of every
statistic; a fault is never a reward of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Protocol, runtime_checkable

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """The result of one action."""

    observation: Observation
    reward: float = 0.0
    """1.0 on the step that ends a solved task; meaningless if ``fault`` is set. Else 0.0, or, where
    an environment measures how much of an unsolved task is solved, that share on the step that
    terminates it, below 1."""
    terminated: bool = False
    truncated: bool = False
    fault: str | None = None
    """Why the environment failed; ``None`` if it did not."""
    note: str = ""
    """A note of the environment about the action, such as "no element 12"."""

    def __post_init__(self) -> None:
        if not isfinite(self.reward):
            raise EnvironmentFault(f"a reward is {self.reward}; expected a finite number")

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated or self.fault is not None


@runtime_checkable
class Environment(Protocol):
    """An environment with tasks. One object runs one episode at a time."""

    @property
    def name(self) -> str:
        """Name of the environment in results, such as ``"phone (simulated)"``."""
        ...

    @property
    def tasks(self) -> Sequence[str]:
        """Names of the task templates that ``reset`` takes."""
        ...

    async def reset(self, *, task: str, seed: int) -> Observation:
        """Start an episode; equal arguments give equal episodes. Raises ``ConfigError`` if there is
        no such task, ``EnvironmentFault`` if the environment cannot be set up."""
        ...

    async def step(self, action: Action) -> Step:
        """Do one action. An invalid action changes nothing, costs a step, and gets a ``note``.
        Raises ``EnvironmentFault`` if the environment failed, or no episode is running."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Restorable(Protocol):
    """An environment whose state can be saved and restored cheaply."""

    def snapshot(self) -> object:
        """The state of the running episode; opaque, and valid until the episode ends."""
        ...

    def restore(self, state: object) -> Observation: ...


@runtime_checkable
class Graded(Restorable, Protocol):
    """An environment that can solve its own tasks, as scripted critics require."""

    def expert(self) -> Action:
        """A right action in the present state."""
        ...

    def grade(self, action: Action) -> float:
        """1.0 if ``action`` brings the present state nearer to success, else 0.0."""
        ...


def checker_version(environment: Environment) -> int:
    """Version of an environment's success check: its attribute ``checker``; 1 if it has none.
    Rewards under different versions are not comparable."""
    version: int = getattr(environment, "checker", 1)
    return version


def check_factory(make: object) -> None:
    """Raise ``ConfigError`` for an environment in the place of a function that makes one."""
    if not callable(make):
        kind = type(make).__name__
        raise ConfigError(
            f"expected a function that makes an environment, got an object of type {kind}; "
            f"write {kind} instead of {kind}(), or lambda: {kind}(...) if it has arguments"
        )
