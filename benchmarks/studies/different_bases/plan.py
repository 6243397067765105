"""Pools of agents, episodes and contrasts, fixed before the study was run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from swarm_ui.environments.phone import VALIDATION_SEEDS, jobs
from swarm_ui.rollout import Job

AGENTS = 4
TEST_DRAW = 1
CONTINUED, SCRATCH = "continued", "scratch"
POOLS = {
    CONTINUED: "the shipped base agent, and it after more stage 1 on three sets of devices",
    SCRATCH: "four agents from scratch, each with its own seed and demonstrations",
}
DIFFERENT = "different agents"
LIMIT = 0.04
"""The study ends if the headroom is below this value. The headroom is P(any of four different
agents is right) - P(the best of them is right)."""
Split = Literal["validation", "parameters", "templates", "apps"]
SPLITS: dict[Split, str] = {
    "validation": "validation parameters",
    "parameters": "new parameters",
    "templates": "new templates",
    "apps": "new apps",
}
"""Of the phone. The best agent of a pool is chosen on validation parameters."""
MAIN: Split = "parameters"
MEASURES = {
    "headroom": "different agents: any right - the best agent right",
    "gain of any": "any right: different agents - clones of the best agent",
    "gain of the vote": "success of the vote: different agents - clones of the best agent",
}
"""The differences that were named before the study was run, on new parameters. All else is
exploratory."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of episodes, and the training of agents from scratch."""

    validation: int = 38
    """One of each training template."""
    parameters: int = 76
    templates: int = 39
    apps: int = 45
    steps: int = 1000
    """Optimiser steps of each agent from scratch; the shipped agent had 9,000 of twice the size."""

    def jobs(self, split: Split) -> Sequence[Job]:
        """The episodes of a split, the same for every team."""
        if split == "validation":
            return jobs("parameters", self.validation, TEST_DRAW, seeds=VALIDATION_SEEDS)
        return jobs(split, getattr(self, split), TEST_DRAW)


QUICK = Plan(validation=2, parameters=2, templates=2, apps=2, steps=2)
"""A size for testing the study; its figures have no meaning."""
