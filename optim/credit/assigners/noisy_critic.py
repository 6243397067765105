"""A critic with artificial errors, to measure their effect on learning."""

from __future__ import annotations

import msgspec

from swarm_ui.credit import CreditAssigner, CreditTable
from swarm_ui.errors import ConfigError
from swarm_ui.node import derive
from swarm_ui.optim.credit.assigners.assigner import calls_of
from swarm_ui.optim.credit.assigners.critic import digest
from swarm_ui.optim.credit.assigners.progress_credit import screen_key
from swarm_ui.trace.records import Trace


class NoisyCritic:
    """Adds errors to the scores of a critic.

    An error is drawn once for each screen and proposal, because a real critic repeats its errors.
    With ``fresh`` it is drawn for each message instead, so errors average out. Implements
    :class:`~swarm_ui.credit.CreditAssigner`.
    """

    def __init__(
        self,
        critic: CreditAssigner,
        *,
        flip: float = 0.0,
        bias: float = 0.0,
        anti: bool = False,
        fresh: bool = False,
        seed: int = 0,
    ) -> None:
        """
        Args:
            critic: gives the scores without errors.
            flip: share of scores ``s`` that become ``1 - s``.
            bias: added to every score, which is then clipped to [0, 1].
            anti: whether every score is inverted first, so that the critic prefers wrong actions.
            fresh: see the class.
            seed: decides which scores are inverted.
        """
        if not 0.0 <= flip <= 1.0:
            raise ConfigError(f"NoisyCritic: flip must be in [0, 1], got {flip}")
        if not -1.0 <= bias <= 1.0:
            raise ConfigError(f"NoisyCritic: bias must be in [-1, 1], got {bias}")
        self._critic, self._flip, self._bias = critic, flip, bias
        self._anti, self._fresh, self._seed = anti, fresh, seed

    @property
    def name(self) -> str:
        parts = [
            f"{100 * self._flip:g} % {'fresh ' if self._fresh else ''}errors" if self._flip else "",
            f"bias {self._bias:+g}" if self._bias else "",
            "turned round" if self._anti else "",
        ]
        return ", ".join([self._critic.name, *filter(None, parts)])

    @property
    def calls(self) -> int | None:
        """Calls of the critic so far; ``None``: it does not count them."""
        return calls_of(self._critic)

    async def assign(self, trace: Trace, state: object | None) -> CreditTable:
        """The critic's table with errors. Unscored messages stay unscored."""
        table = (await self._critic.assign(trace, state)).unit()
        said = {(m.round, m.sender): m for m in trace.messages}
        screen = digest(screen_key(trace.observation))

        def worse(score: float | None, round: int, agent: str) -> float | None:
            if score is None:
                return None
            message = said[round, agent]
            what = repr(message.action.key) if message.action else message.content
            if self._fresh:
                what = f"{trace.run}/{trace.seed}/{message.id}"
            score = 1.0 - score if self._anti else score
            if derive(self._seed, screen, what) / 2**53 < self._flip:
                score = 1.0 - score
            return max(0.0, min(1.0, score + self._bias))

        values = tuple(
            tuple(worse(v, r, agent) for v, agent in zip(row, trace.agents, strict=True))
            for r, row in enumerate(table.values)
        )
        return msgspec.structs.replace(table, values=values, source=self.name, errors=None)
