"""Sizes and contrasts of the study, fixed before it was run with checker v2."""

from __future__ import annotations

import msgspec

MAIN = ("screen", "random")
"""The setting for which differences were named before the study was run: what each agent sees, and
what the broken agent sends."""
CONTRASTS = (("full", "healthy"), ("cut", "full"), ("cut", "none"))
"""The named differences of arms. All others, and those of other settings, are exploratory."""
EXPLORED = (
    ("cut", "random"),
    ("cut", "healthy"),
    ("cut-edges", "full"),
    ("cut-vote", "full"),
    ("none", "full"),
    ("random", "full"),
    ("healthy", "healthy-none"),
)
HALF = "half of the loss recovered"
"""What the repaired team is also compared with: the mean of the broken and the healthy team."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a cell."""

    episodes: int = 200
    """Test episodes of each arm."""
    tuning: int = 48
    """Graded episodes on which the broken agent is searched."""
    noise: float = 0.1
    """Share of the critic's verdicts that are inverted."""
    window_steps: int = 6_000
    """Training steps of the agent that sees half of a long screen."""


QUICK = Plan(episodes=4, tuning=4, window_steps=2)
"""A size for testing the study; its figures have no meaning."""
