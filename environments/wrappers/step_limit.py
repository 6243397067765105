"""A limit on the steps of an episode."""

from __future__ import annotations

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers.wrapper import Wrapper
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation


class StepLimit(Wrapper):
    """Truncates an episode after ``steps`` steps, unless it ends before."""

    def __init__(self, env: Environment, steps: int) -> None:
        super().__init__(env)
        if steps < 1:
            raise ConfigError(f"StepLimit: 'steps' must be >= 1, got {steps}")
        self.steps = steps
        self._left = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self._left = 0
        screen = await self.env.reset(task=task, seed=seed)
        self._left = self.steps
        return screen

    async def step(self, action: Action) -> Step:
        if self._left == 0:
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        step = await self.env.step(action)
        self._left = 0 if step.ended else self._left - 1
        return replace(step, truncated=True) if self._left == 0 and not step.ended else step

    def put_aside(self) -> object:
        return self._left

    def take_up(self, state: object) -> None:
        assert isinstance(state, int)
        self._left = state
