"""A critic that cannot be sent to other processes, for episodes that are played there."""

from __future__ import annotations

from collections.abc import Callable

from swarm_ui.credit import CreditAssigner, CreditTable
from swarm_ui.rollout.per_process import PerProcess
from swarm_ui.trace.records import Trace


class PerProcessCritic:
    """A critic that each process makes for itself, when it scores its first message there.

    :class:`~swarm_ui.optim.rollout_actors.RolloutActors` send it to the workers with the episodes.
    Each process makes the critic once and uses its scores. Implements
    :class:`~swarm_ui.credit.CreditAssigner`.
    """

    def __init__(self, make: Callable[[], CreditAssigner], name: str) -> None:
        """
        Args:
            make: makes the critic. It is sent to the other processes, and reads files there.
            name: the name of the critic; the critic itself is not made here.
        """
        self._critic = make if isinstance(make, PerProcess) else PerProcess(make)
        self.name = name

    async def assign(self, trace: Trace, state: object | None = None) -> CreditTable:
        """See :class:`~swarm_ui.credit.CreditAssigner`. Also raises the errors of making the
        critic, such as ``ConfigError``."""
        return await self._critic().assign(trace, state)
