"""A wrapper that injects faults, to test code that runs episodes."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from typing import Literal

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers.wrapper import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation

Place = Literal["reset", "step", "close"]


class FaultInjector(Wrapper):
    """Injects faults into ``reset``, ``step`` and ``close``, at random or at given calls.

    After a fault no episode is running until the next ``reset``. A call with a fault does not
    reach the inner environment, except ``close``, which closes it first.

    Args:
        env: the environment.
        seed: the seed of the random faults, or a generator. If a pool makes several environments,
            share a generator: with the same seed, all of them would fail at the same calls.
        reset, step, close: probability of a fault, from 0 to 1.
        at: calls that always fail, counted from 0 over the life of this object:
            ``{"step": [4], "reset": [0]}``.
        how: ``"raise"`` raises a fault of ``step``; ``"tell"`` returns it in :attr:`Step.fault`.
    """

    def __init__(
        self,
        env: Environment,
        *,
        seed: int | random.Random = 0,
        reset: float = 0.0,
        step: float = 0.0,
        close: float = 0.0,
        at: Mapping[Place, Collection[int]] | None = None,
        how: Literal["raise", "tell"] = "raise",
    ) -> None:
        super().__init__(env)
        self._chances: dict[Place, float] = {"reset": reset, "step": step, "close": close}
        for place, chance in self._chances.items():
            if not 0.0 <= chance <= 1.0:
                raise ConfigError(f"FaultInjector: '{place}' must be from 0 to 1, got {chance}")
        strange = sorted(set(at or {}) - set(self._chances))
        if strange:
            raise ConfigError(
                f"FaultInjector: 'at' names {strange[0]!r}, expected reset, step or close"
            )
        self._at = {place: frozenset((at or {}).get(place, ())) for place in self._chances}
        self._rng = seed if isinstance(seed, random.Random) else random.Random(seed)
        self._how = how
        self._calls: dict[Place, int] = dict.fromkeys(self._chances, 0)
        self.injected: list[tuple[Place, int]] = []
        """The faults so far: the method, and the number of the call."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.present = None
        if self._breaks("reset"):
            raise EnvironmentFault(self._reason())
        return await super().reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        screen = self.running()
        if not self._breaks("step"):
            return await super().step(action)
        self.present = None
        if self._how == "tell":
            return Step(observation=screen, fault=self._reason())
        raise EnvironmentFault(self._reason())

    async def close(self) -> None:
        await super().close()
        if self._breaks("close"):
            raise EnvironmentFault(self._reason())

    def _breaks(self, place: Place) -> bool:
        call = self._calls[place]
        self._calls[place] = call + 1
        drawn = self._rng.random() < self._chances[place]
        if drawn or call in self._at[place]:
            self.injected.append((place, call))
            return True
        return False

    def _reason(self) -> str:
        place, call = self.injected[-1]
        return f"{self.name}: injected fault in {place}, call {call}"
