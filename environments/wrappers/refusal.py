"""The base of wrappers that refuse actions: a refused action is a lost step with a note."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step
from swarm_ui.environments.wrappers.wrapper import Wrapper
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation, Past

WAIT = Action(action_type="wait")


class RefusalWrapper(Wrapper):
    """Calls :meth:`objection` before each action.

    Instead of a refused action the environment gets ``wait``, so that it counts the lost step. The
    history shows the refused action.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._screen: Observation | None = None
        self._done = 0
        self._refused: Mapping[int, Past] = {}

    async def objection(self, action: Action, screen: Observation) -> str:
        """Why the action is refused, or an empty string."""
        raise NotImplementedError

    async def reset(self, *, task: str, seed: int) -> Observation:
        self._screen, self._done, self._refused = None, 0, {}
        self._screen = await self.env.reset(task=task, seed=seed)
        return self._screen

    async def step(self, action: Action) -> Step:
        screen = self._screen
        if screen is None:
            raise EnvironmentFault(f"{self.name}: no episode is running; call reset first")
        why = await self.objection(action, screen)
        self._screen = None
        if why:
            element = screen.element(action.index)
            role, label = (element.role, element.label) if element else ("", "")
            past = Past(action=action, role=role, label=label)
            self._refused = {**self._refused, self._done: past}
        step = await self.env.step(WAIT if why else action)
        self._done += 1
        shown = self.shown(step.observation)
        self._screen = None if step.ended else shown
        return replace(step, observation=shown, note=why or step.note)

    async def close(self) -> None:
        self._screen = None
        await self.env.close()

    def shown(self, screen: Observation) -> Observation:
        past = list(screen.history)
        for place, refused in self._refused.items():
            if place < len(past) and past[place].action == WAIT:
                past[place] = refused
        return replace(screen, history=tuple(past)) if self._refused else screen

    def put_aside(self) -> object:
        return self._screen, self._done, self._refused

    def take_up(self, state: object) -> None:
        assert isinstance(state, tuple)
        self._screen, self._done, self._refused = state
