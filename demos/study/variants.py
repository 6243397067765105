"""What the learning benchmark trains: the whole method, its ablations, and other settings of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from study.settings import Settings

_NO_EDGES = 1e-9
"""A density at which no edge is ever drawn."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to train a team; what it does not say is as in the full method."""

    name: str
    label: str
    changes: dict[str, Any] = field(default_factory=dict)
    """Of the settings."""
    critic: bool = True
    """Without: the outcome of the episode is everybody's credit."""
    imitate: bool = False
    """The agents are taught the solver's action on every screen they meet, and nothing else."""
    team: bool = True
    """Whether it is tested on a DAG too."""

    def settings(self, base: Settings, seed: int) -> Settings:
        """Of one run."""
        return dataclasses.replace(base, **{"method": "dpo", **self.changes, "seed": seed})


FULL = Variant("full", "full: DPO, critic, redrawn edges")
VARIANTS = (
    FULL,
    Variant("rft", "RFT instead of DPO", {"method": "rft"}),
    Variant("without_cr", "without credit re-assignment: outcome only", critic=False),
    Variant("without_edge_update", "without edge update: one fixed DAG", {"edges": "fixed"}),
    Variant(
        "independent_voters", "independent voters: no edges, one round",
        {"edges": "fixed", "density": _NO_EDGES, "rounds": 1}, team=False,
    ),
    Variant("learned_edges", "learned edges", {"edges": "learned"}),
    Variant("critic_imitation", "imitation of the critic's own choice", imitate=True),
)  # fmt: skip
BY_NAME = {variant.name: variant for variant in VARIANTS}
