"""How large the study is. Calls and hours of each cell follow from these numbers."""

from __future__ import annotations

import msgspec


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes for two CPU cores; a study cannot change them once it has begun."""

    model: str = "smollm2"
    walks: int = 600
    """Walks on training templates of the phone, and as many on phones with invented apps."""
    devices: int = 128
    minutes: float = 60.0
    """Stage 1: time of each training."""
    layers: str = "8-29"
    learning_rate: float = 1e-3
    iterations: int = 2
    """Stage 2."""
    rollouts: int = 32
    rounds: int = 2
    episodes: int = 76
    """Test episodes of each split of the phone."""
    pages: int = 49
    """Test episodes on the reference pages of MiniWoB++; 0: none."""
    blind_pages: int = 0
    """Test episodes on the other pages, which are run once, at the end."""
    concurrency: int = 16


QUICK = Sizes(
    walks=1, devices=1, minutes=0.05, layers="0-1", iterations=1, rollouts=2, rounds=1, episodes=2,
    pages=0, concurrency=2,
)  # fmt: skip
"""Shows that every cell works; the figures mean nothing."""
EVALUATION_SEED = 11
"""Chooses the test episodes, the same for all rows."""
CALLS_PER_EPISODE = 9
"""For estimates: mean decisions of an episode."""
CALLS_PER_SECOND = 2.5
"""For estimates: greedy replies of SmolLM2 on two cores."""
