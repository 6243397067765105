"""Credit that needs no judge: the outcome of the episode."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.credit import Credit, proposals, unreadable
from swarm_ui.trace.records import Episode, Trace

_ENDED = {True: "the episode was solved", False: "the episode was not solved"}


class Outcome:
    """The episode's outcome as the credit of all its messages: learning *without* a critic.

    1.0 or 0.0 for all proposals and unreadable replies.
    """

    name = "outcome"
    calls = 0

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See :class:`swarm_ui.Critic`."""
        return [self.credit(episode) for episode in episodes]

    def credit(self, episode: Episode) -> Credit:
        """The credit of one episode."""
        solved = bool(episode.success)

        def ids(trace: Trace) -> list[str]:
            return [*(m.id for m in proposals(trace)), *unreadable(trace)]

        scored = [ids(record.trace) for record in episode.steps]
        return Credit.of(
            episode,
            [dict.fromkeys(found, float(solved)) for found in scored],
            source=self.name,
            rationale=[dict.fromkeys(found, _ENDED[solved]) for found in scored],
        )
