"""The sizes of the study. Calls and hours of each cell follow from these numbers."""

from __future__ import annotations

import msgspec


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes for two CPU cores; a study cannot change them once it has begun."""

    model: str = "smollm2"
    adapter: str = "smollm2-phone"
    """Stage 1: name or folder of the adapter that every other row starts from."""
    iterations: int = 2
    """Stage 2. Both iterations train one adapter for all agents (``train.shared_iterations``)."""
    rollouts: int = 32
    steps: int = 40
    """Optimiser steps of each iteration; the control makes as many in all."""
    batch_size: int = 16
    """Rows of an optimiser step, of stage 2 and of the control."""
    learning_rate: float = 2e-4
    """Of stage 2 and of the control."""
    walks: int = 220
    """Walks on training templates of the phone for the control's corpus, which is about as many
    samples as its steps need."""
    rounds: int = 2
    """Message rounds of the teams with edges."""
    episodes: int = 38
    """Test episodes of each split of the phone: one for each training template, about three for
    each new one, and four for each of new apps."""
    zero_shot_episodes: int = 12
    pages: int = 49
    """Test episodes on the reference pages of MiniWoB++; 0: none."""
    blind_pages: int = 0
    """Test episodes on the other 76 pages. They were played once, with the adapter of this package
    (``docs/models.md``), so that the study leaves them out."""
    concurrency: int = 16


QUICK = Sizes(
    walks=1, iterations=1, rollouts=2, steps=2, rounds=1, episodes=2, zero_shot_episodes=2,
    pages=0, concurrency=2,
)  # fmt: skip
"""Shows that every cell works; the figures mean nothing."""
EVALUATION_SEEDS = (11, 12, 13)
"""Choose the test episodes. Stage 1 alone gets all of them, and every other row the first."""
AGENTS_COST = 1.15
"""For estimates: time of four agents that see the same screen, relative to one."""
ROUNDS_COST = 3.0
"""The same with messages, whose prompts differ between agents and rounds."""
