"""A critic that cannot be sent to other processes, for episodes that are played there."""

from __future__ import annotations

from collections.abc import Callable

from swarm_ui.credit import CreditAssigner, CreditTable
from swarm_ui.trace.records import Trace


class PerProcessCritic:
    """A critic that each process makes for itself, when it scores its first message there.

    :class:`~swarm_ui.optim.rollout_actors.RolloutActors` send it to the workers with the episodes.
    It is made for every copy that is sent; with ``functools.cache`` on the function, each process
    makes the critic once. Implements
    :class:`~swarm_ui.credit.CreditAssigner`.
    """

    def __init__(self, make: Callable[[], CreditAssigner], name: str) -> None:
        """
        Args:
            make: makes the critic. It is sent to the other processes, and reads files there.
            name: the name of the critic; the critic itself is not made here.
        """
        self._make = make
        self._critic: CreditAssigner | None = None
        self.name = name

    async def assign(self, trace: Trace, state: object | None = None) -> CreditTable:
        """See :class:`~swarm_ui.credit.CreditAssigner`. Also raises the errors of making the
        critic, such as ``ConfigError``."""
        if self._critic is None:
            self._critic = self._make()
        return await self._critic.assign(trace, state)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_critic": None}
