"""A critic that knows the solution: the environment grades each action itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from swarm_ui.action import Action
from swarm_ui.credit import SOLVER_CREDIT, Credit
from swarm_ui.environment import Restorable
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.critic import Scripted, inmost, judged
from swarm_ui.rollout import WAIT
from swarm_ui.trace.records import Episode


class ScriptedCritic(Scripted):
    """Grades each distinct proposal with an environment of its own, set to the same state.

    The states of a finished episode come from replaying its executed actions, so it also judges
    episodes from files and other processes. A :class:`~swarm_ui.credit.Judge` too.
    """

    name = SOLVER_CREDIT

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """1.0 for a proposal that brings the state nearer to success, else 0.0, also for a reply
        without a valid action; nodes that failed or abstained are unscored. Raises ``ConfigError``
        if the environment cannot grade, or a replay shows another screen."""
        return [await self._credit(episode) for episode in episodes]

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        """See :class:`swarm_ui.Judge`. Raises ``ConfigError`` without a snapshot."""
        own = await self.restored(state)
        return [own.grade(action) for action in actions]

    async def states(self, episode: Episode) -> list[object]:
        """A snapshot of the environment at each decision, from playing the episode again. Raises
        ``ConfigError`` if other screens are shown, and ``EnvironmentFault``."""
        where = f"{self.name}: episode {episode.task}/{episode.seed}"
        environment = await self.made()
        found: list[object] = []
        try:
            observation = await environment.reset(task=episode.task, seed=episode.seed)
            for number, record in enumerate(episode.steps):
                if _plain(observation) != _plain(record.trace.observation):
                    raise ConfigError(
                        f"{where}: the replay shows another screen at step {number}; give the "
                        "critic the environment, with its wrappers, in which it was played"
                    )
                found.append(inmost(environment).snapshot())
                if number + 1 < len(episode.steps):
                    step = await environment.step(record.executed or WAIT)
                    if step.fault is not None:
                        raise EnvironmentFault(f"{where}, step {number}: {step.fault}")
                    observation = step.observation
        finally:
            await environment.close()
        return found

    async def _credit(self, episode: Episode) -> Credit:
        try:
            return await judged(self, episode)
        except EnvironmentFault as error:
            return Credit.unscored(episode, self.name, f"not graded: {error}")

    async def made(self) -> Any:
        """A new environment. Raises ``ConfigError`` if it cannot grade."""
        environment = await super().made()
        own = inmost(environment)
        if not (isinstance(own, Restorable) and hasattr(own, "grade")):
            raise ConfigError(
                f"{self.name}: '{environment.name}' cannot grade actions; expected an environment "
                "with snapshot(), restore() and grade(). Use a language-model critic instead"
            )
        return environment


def _plain(observation: Observation) -> Observation:
    return msgspec.structs.replace(observation, png=None)
