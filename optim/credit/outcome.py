"""Credit that needs no judge: the outcome of the episode."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.credit import Credit, proposals, unreadable
from swarm_ui.trace.records import Episode


class Outcome:
    """The episode's outcome as the credit of all its messages: learning *without* a critic.

    1.0 or 0.0 for all proposals and unreadable replies.
    """

    name = "outcome"

    async def __call__(self, episodes: Sequence[Episode]) -> list[Credit]:
        """See :class:`swarm_ui.Critic`."""
        return [self.credit(episode) for episode in episodes]

    def credit(self, episode: Episode) -> Credit:
        """The credit of one episode."""
        value = float(bool(episode.success))
        why = "the episode was solved" if episode.success else "the episode was not solved"
        traces = [record.trace for record in episode.steps]
        scored = [[*(m.id for m in proposals(trace)), *unreadable(trace)] for trace in traces]
        return Credit.of(
            episode,
            [dict.fromkeys(ids, value) for ids in scored],
            source=self.name,
            rationale=[dict.fromkeys(ids, why) for ids in scored],
        )
