"""A critic that errs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.credit import Credit, Critic, Matrix
from swarm_ui.node import derive
from swarm_ui.observation import Observation
from swarm_ui.optim.credit.critic import credit_of, judge_of, name_of
from swarm_ui.optim.preferences import screen_key
from swarm_ui.trace.records import Episode, StepRecord


class NoisyCritic:
    """Adds errors to the scores of a critic, and to the grades of the judge that it is.

    An error is drawn once for each screen and proposal, because a real critic repeats its errors.
    """

    def __init__(
        self, critic: Critic, *, flip: float = 0.0, anti: bool = False, seed: int = 0
    ) -> None:
        """
        Args:
            critic: gives the scores without errors.
            flip: share of scores ``s`` that become ``1 - s``.
            anti: whether every score is inverted first, so that the critic prefers wrong actions.
            seed: decides which scores are inverted.
        """
        self._critic, self._flip, self._anti, self._seed = critic, flip, anti, seed
        parts = [f"{100 * flip:g} % errors" if flip else "", "inverted" if anti else ""]
        self.name = ", ".join([name_of(critic), *filter(None, parts)])

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """The critic's credit with errors. Unscored messages stay unscored."""
        given = [credit.unit() for credit in await credit_of(self._critic, episodes)]
        return [
            msgspec.structs.replace(
                credit,
                values=tuple(map(self._worse, episode.steps, credit.values)),
                source=self.name,
            )
            for episode, credit in zip(episodes, given, strict=True)
        ]

    async def grade(
        self, observation: Observation, actions: Sequence[Action], state: object
    ) -> list[float | None]:
        """The judge's grades with the same errors."""
        judge = judge_of(self._critic)
        assert judge is not None, f"{self.name} judges no single actions"
        grades = await judge.grade(observation, actions, state)
        return [
            self._turned(observation, repr(a.key), g) for a, g in zip(actions, grades, strict=True)
        ]

    def _worse(self, record: StepRecord, matrix: Matrix) -> Matrix:
        said = {(m.round, m.sender): m for m in record.trace.messages}

        def cell(score: float | None, round: int, agent: str) -> float | None:
            if score is None:
                return None
            message = said[round, agent]
            what = repr(message.action.key) if message.action else message.content
            return self._turned(record.trace.observation, what, score)

        return tuple(
            tuple(cell(v, r, a) for v, a in zip(row, record.trace.agents, strict=True))
            for r, row in enumerate(matrix)
        )

    def _turned(self, observation: Observation, what: str, score: float | None) -> float | None:
        if score is None:
            return None
        draw = derive(self._seed, screen_key(observation).hex(), what) / 2**53
        return 1.0 - score if (draw < self._flip) != self._anti else score
