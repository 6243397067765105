"""Teams, episodes, measures and contrasts of the study, fixed before it was run with checker v2."""

from __future__ import annotations

import msgspec

from swarm_ui.experiment.settings import Settings

MEASURES = {
    "one": "an agent is right",
    "any": "any agent is right",
    "same": "all say the same",
    "vote": "the vote is right",
    "split": "the vote is right where agents disagree without edges",
}
"""Shares of decisions."""
CONTRASTS = ("one", "same", "vote")
"""The measures whose difference, with edges minus without, was named before the study was run. The
others are exploratory."""
SILENT, TALKING = "no edges", "on the DAG"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The training of a team, and the episodes on which it decides. Other settings of the training
    are those of the demo."""

    agents: int = 4
    rounds: int = 3
    iterations: int = 4
    shared_iterations: int = 3
    episodes: int = 112
    """Rollouts in each iteration."""
    shared_steps: int | None = None
    """Optimiser steps of a shared iteration; ``None``: the demo's."""
    watched: int = 76
    """Validation episodes that the team without edges plays."""

    def settings(self, seed: int) -> Settings:
        """The settings of one team."""
        return Settings(
            seed=seed, agents=self.agents, rounds=self.rounds, iterations=self.iterations,
            shared_iterations=self.shared_iterations, episodes=self.episodes,
            shared_steps=self.shared_steps, processes=1,
        )  # fmt: skip


QUICK = Plan(rounds=2, iterations=1, shared_iterations=1, episodes=4, shared_steps=2, watched=6)
"""A size for testing the study; its figures have no meaning."""
