"""A wrapper that injects faults, to test code that runs episodes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Literal

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers.wrapper import Wrapper
from swarm_ui.errors import EnvironmentFault
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
        self._at = at or {}
        self._rng = seed if isinstance(seed, random.Random) else random.Random(seed)
        self._how = how
        self._calls: Counter[Place] = Counter()
        self.injected: list[tuple[Place, int]] = []
        """The faults so far: the method, and the number of the call."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.present = None
        self._maybe("reset")
        return await super().reset(task=task, seed=seed)

    async def step(self, action: Action) -> Step:
        screen = self.running()
        try:
            self._maybe("step")
        except EnvironmentFault as error:
            self.present = None
            if self._how == "tell":
                return Step(observation=screen, fault=str(error))
            raise
        return await super().step(action)

    async def close(self) -> None:
        await super().close()
        self._maybe("close")

    def _maybe(self, place: Place) -> None:
        call = self._calls[place]
        self._calls[place] += 1
        if self._rng.random() < self._chances[place] or call in self._at.get(place, ()):
            self.injected.append((place, call))
            raise EnvironmentFault(f"{self.name}: injected fault in {place}, call {call}")
