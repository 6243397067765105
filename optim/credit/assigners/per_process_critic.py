"""A critic that cannot be sent to other processes, for episodes that are played there."""

from __future__ import annotations

from collections.abc import Callable

from swarm_ui.credit import CreditAssigner, CreditTable
from swarm_ui.rollout.per_process import PerProcess
from swarm_ui.trace.records import Trace


class PerProcessCritic:
    """A critic that each process makes for itself, when it scores its first message there.

    :class:`~swarm_ui.optim.rollout_actors.RolloutActors` send it to the workers with the episodes.
    It is made once in each process, and its scores are those of the critic that the function makes.
    Implements :class:`~swarm_ui.credit.CreditAssigner`.
    """

    def __init__(self, make: Callable[[], CreditAssigner], name: str) -> None:
        """
        Args:
            make: makes the critic. It is sent to the other processes, and reads files there.
            name: of the critic, which is not made here.
        """
        self._critic = make if isinstance(make, PerProcess) else PerProcess(make)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def assign(self, trace: Trace, state: object | None = None) -> CreditTable:
        """See :class:`~swarm_ui.credit.CreditAssigner`. Raises what making the critic raises, such
        as ``ConfigError``."""
        return await self._critic().assign(trace, state)
