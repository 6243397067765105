"""One episode in the hands of a person: what was done, what can be undone, what came of it."""

from __future__ import annotations

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Restorable
from swarm_ui.environments.wrappers import Recorder
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation
from swarm_ui.trace.jsonl import Anywhere
from swarm_ui.trace.records import Episode


class PlaySession:
    """An episode that is being played; begin with :meth:`begin`."""

    def __init__(self, env: Environment, path: Anywhere | None, actor: str) -> None:
        self._world = Recorder(env, path, actor=actor)
        self._before: list[object] = []
        self.screen = Observation(goal="", elements=())
        self.turn = 0
        """Counts whatever changed the screen: an answer to an older screen can be refused."""
        self.steps = 0
        self.note = ""
        self.ended = False

    @property
    def episode(self) -> Episode | None:
        """What was recorded; ``None`` if nothing was done or it is not over."""
        return self._world.last

    @property
    def can_undo(self) -> bool:
        return bool(self._before) and not self.ended

    async def begin(self, task: str, seed: int) -> None:
        self.screen = await self._world.reset(task=task, seed=seed)

    async def act(self, action: Action) -> None:
        """Do one action. A fault ends the episode, and is told in its record."""
        aside = self._world.snapshot() if isinstance(self._world, Restorable) else None
        self.turn += 1
        self.steps += 1
        try:
            step = await self._world.step(action)
        except EnvironmentFault as error:
            self.note, self.ended = str(error), True
            return
        if aside is not None:
            self._before.append(aside)
        self.screen, self.note, self.ended = step.observation, step.note, step.ended

    def undo(self) -> bool:
        """Take the last action back, as if it had never been done; false if that cannot be."""
        if not self.can_undo or not isinstance(self._world, Restorable):
            return False
        self.screen = self._world.restore(self._before.pop())
        self.turn += 1
        self.steps -= 1
        self.note = ""
        return True

    def leave(self) -> None:
        """Give up; what was done is kept as an episode without an outcome."""
        self._world.leave("given up")
        self.ended = True

    def outcome(self) -> str:
        """What came of it, in a few words."""
        episode = self.episode
        if episode is None:
            return "nothing was done"
        if episode.fault is not None:
            return str(episode.fault)
        steps = f"{len(episode.steps)} step{'' if len(episode.steps) == 1 else 's'}"
        return f"solved in {steps}" if episode.success else f"not solved, {steps}"
