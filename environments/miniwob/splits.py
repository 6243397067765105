"""Seeds of MiniWoB++ episodes for training and for tests. The ranges do not overlap."""

from __future__ import annotations

TRAIN_SEEDS = range(1_000_000)
VALIDATION_SEEDS = range(1_000_000, 2_000_000)
"""Validation seeds, for choices before the test, such as training tasks and settings."""
TEST_SEEDS = range(5_000_000, 6_000_000)
