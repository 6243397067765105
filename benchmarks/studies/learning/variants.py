"""The variants of the learning benchmark: the full method, its ablations, and other settings."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import TRAINED
from swarm_ui.optim.config import TeamConfig

_NO_EDGES = 1e-9
"""A density at which no edge is ever drawn."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to train a team. Fields that are not set are those of the full method."""

    name: str
    label: str
    changes: dict[str, Any] = field(default_factory=dict)
    """The changed settings."""
    critic: bool = True
    """Whether there is a critic; if not, the outcome is the credit of all messages."""
    guided: bool = True
    """Whether the critic also guides rollouts and grades the adversary's negatives."""
    imitate: bool = False
    """The agents learn the solver's action on every screen, and nothing else."""
    team: bool = True
    """Whether the team is also tested on DAGs."""
    vote: bool = True
    """Whether the team is tested as a vote without edges."""

    def __post_init__(self) -> None:
        if self.guided and not self.critic:
            raise ValueError(f"variant {self.name}: without a critic nothing can guide or grade")

    @property
    def arm(self) -> str:
        """Name of the arm that represents the variant in a table."""
        return "trained-team" if self.team else "trained-vote" if self.vote else TRAINED

    def settings(self, base: Settings, seed: int) -> Settings:
        """The settings of one run."""
        return dataclasses.replace(base, **{**_DPO, **self.changes, "seed": seed})

    def config(self, config: TeamConfig) -> TeamConfig:
        """The settings of the trainer. If there is no guidance, they state this explicitly."""
        if self.guided:
            return config
        return dataclasses.replace(config, guide=0.0, grade_negatives=False)


RECORDED = dict[str, Any](
    iterations=5, shared_iterations=3, temperature=1.1, episodes_test=304, episodes_other=195
)
"""Settings of the record, chosen on validation seeds and on apps left out of training; 195 is 15
episodes of each new template, and 304 are 8 of each known one."""


FULL = Variant("full", "full: DPO, critic, redrawn edges")
_DPO = {"method": "dpo", "lr": 2e-3}
_RFT = {"method": "rft", "lr": 3e-3}
"""RFT with the learning rate that was best on validation seeds."""
_AGENTS = Settings().agents
_CALLS = _AGENTS * Settings().rounds
"""Of a team in a decision: what one agent alone spends on that many decisions."""
_STEPS = 35
"""Optimiser steps of each agent's own update (the default of a small model)."""
VARIANTS = (
    FULL,
    Variant("rft", "RFT instead of DPO", _RFT),
    Variant(
        "rft_unguided", "RFT, critic's credit; no guidance, negatives not graded", _RFT,
        guided=False, team=False,
    ),
    Variant(
        "rft_outcome", "RFT, outcome credit; no guidance, negatives not graded", _RFT,
        critic=False, guided=False, team=False,
    ),
    Variant(
        "single_agent", "one agent alone, RFT, calls and optimiser steps of the team",
        {**_RFT, "agents": 1, "edges": "fixed", "rounds": 1, "steps": _AGENTS * _STEPS,
         "episodes": _CALLS * Settings().episodes},
        team=False,
    ),
    Variant(
        "without_cr", "outcome credit; no guidance, negatives not graded",
        critic=False, guided=False,
    ),
    Variant("without_edge_update", "without edge update: one fixed DAG", {"edges": "fixed"}),
    Variant(
        "independent_voters", "independent voters: no edges, one round",
        {"edges": "fixed", "density": _NO_EDGES, "rounds": 1}, team=False,
    ),
    Variant("learned_edges", "learned edges", {"edges": "learned"}),
    Variant("critic_imitation", "imitation of the critic's own choice", _RFT, imitate=True),
    Variant("without_rehearsal", "without stage-1 lessons in stage 2", {"rehearsal": 0.0}),
    Variant("critic_swap", "another critic: 20 % of its verdicts wrong", {"critic_noise": 0.2}),
)  # fmt: skip
BY_NAME = {variant.name: variant for variant in VARIANTS}
CONTROLLED = ("full", "rft")
"""Variants whose CPU time is also spent on more stage 1."""
