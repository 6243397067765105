"""The size of the study, its arms, and the contrasts that are named in advance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from swarm_ui.experiment.settings import Method

Source = Literal[
    "outcome", "critic", "agents", "states", "tree", "progress", "removed", "resampled", "shapley",
    "learned",
]  # fmt: skip
"""Where the credit of a message comes from; see :data:`SOURCES`."""

SOURCES: dict[Source, str] = {
    "outcome": "outcome",
    "critic": "scripted critic",
    "agents": "agent-wise advantage (Dr. MAS)",
    "states": "state-wise advantage (GiGPO)",
    "tree": "search tree values (MALT)",
    "progress": "progress attribution (SPA-RL)",
    "removed": "leave one out",
    "resampled": "resampling",
    "shapley": "Shapley",
    "learned": "learned critic (SmolLM2)",
}
CRITIC_FREE: tuple[Source, ...] = (
    "agents", "states", "tree", "progress", "removed", "resampled", "shapley",
)  # fmt: skip
"""Sources without knowledge of the solution, other than the outcome itself."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes that all cells have in common."""

    agents: int = 4
    iterations: int = 2
    starts: int = 16
    """Different training starts in each iteration."""
    attempts: int = 4
    """Episodes of each start. Group-wise credit compares them, so all arms play them."""
    steps: int = 40
    """Optimiser steps in each iteration."""
    parameters: int = 111
    """Test episodes on the training templates, with new parameters."""
    validation: int = 37
    """Validation episodes, on which the best critic-free source is chosen."""
    recorded: int = 10
    """Starts of the recorded episodes on which the sources are compared; ``attempts`` of each."""
    continuations: int = 8
    """Continuations that estimate the success rate after an action."""

    @property
    def episodes(self) -> int:
        """Training episodes of an iteration."""
        return self.starts * self.attempts


QUICK = Plan(
    iterations=1, starts=2, attempts=2, steps=2, parameters=4, validation=2, recorded=2,
    continuations=2,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to train. Arms of one part differ in nothing but what is named here."""

    name: str
    label: str
    credit: Source
    method: Method = "rft"
    guide: float = 0.0
    """Probability of executing a right proposal instead of a wrong vote. The scripted critic says
    what is right, also where the outcome is the credit."""
    graded: bool | None = None
    """Whether the scripted critic grades the adversary's negatives; ``None``: no adversary."""

    @property
    def judged(self) -> bool:
        """Whether the scripted critic says which single actions are right."""
        return bool(self.guide) or self.graded is not None


SIDE_BY_SIDE = tuple(
    Arm(name=source, label=label, credit=source) for source, label in SOURCES.items()
)
"""The source of the credit alone changes. RFT, no guidance, no adversary."""

GUIDED = tuple(
    Arm(name=f"{source}-guided", label=f"{SOURCES[source]}, guided 0.7", credit=source, guide=0.7)
    for source in ("outcome", "critic")
)
"""With the arms ``outcome`` and ``critic``: credit x guidance, with RFT."""

FACTORS = tuple(
    Arm(
        name=f"dpo-{credit}-{'guided' if guide else 'free'}-{'graded' if graded else 'ungraded'}",
        label=f"{SOURCES[credit]}, guided {guide:g}, negatives {'' if graded else 'not '}graded",
        credit=credit,
        method="dpo",
        guide=guide,
        graded=graded,
    )
    for credit in ("outcome", "critic")
    for guide in (0.0, 0.7)
    for graded in (False, True)
)
"""Credit x guidance x grading of the adversary's negatives, with DPO. RFT does not use rejected
replies, so there grading cannot have an effect."""

ARMS = {
    arm.name: arm
    for arm in (
        *SIDE_BY_SIDE[:2], *GUIDED, *SIDE_BY_SIDE[2:6], *FACTORS, *SIDE_BY_SIDE[6:],
    )
}  # fmt: skip
"""All arms, in the order in which they are trained."""

CONTRASTS = (
    "scripted critic - outcome, no guidance",
    "best critic-free source - outcome, no guidance",
    "guided 0.7 - no guidance, outcome credit",
)
"""The three differences that were named before the study was run, all with RFT. The second is of
the source with the highest success on validation episodes. All others are exploratory."""
