"""Actors in other processes, which play the episodes of training while the learner updates here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from swarm_ui.rollout import Rollouts


class Publisher(Protocol):
    """Makes the weights of a learner available to actors, by versioned name."""

    def publish(self) -> Mapping[str, str]:
        """Make the current weights of all adapters available.

        Returns:
            The version of each adapter, such as ``{"agent_2": "agent_2@7"}``. Episodes name these
            versions. The versions of the previous call stay available.
        """
        ...

    async def prepare(self) -> None:
        """Deliver the published versions to the place that answers, such as a server that loads
        them.

        It is called before episodes are played, and again before some of them are repeated.

        Raises:
            ModelUnavailable: the versions cannot be delivered now; the episodes are repeated later.
        """
        ...


@dataclass(frozen=True, slots=True)
class RolloutActors:
    """Plays the episodes of :class:`~swarm_ui.optim.trainer.TeamTrainer` in other processes::

        published = PublishedModel(learner, LocalModel.load, folder=run / "published")
        team = CollabGraph.collaborative(model=published, adapters=names)
        async with RayRollout(PhoneEnvironment) as rollouts:
            actors = RolloutActors(rollouts, published)
            await TeamTrainer(learner, team, actors, sample_jobs).run()

    The agents of the team must ask a model that finds the published versions where the episodes are
    played, such as :class:`swarm_ui.nodes.PublishedModel`.
    """

    rollouts: Rollouts
    """The rollouts, which must be open; they are not closed here."""
    publisher: Publisher
