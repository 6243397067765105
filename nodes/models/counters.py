"""What a model has done since it was made."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Counts and times since the model was created."""

    calls: int = 0
    scored: int = 0
    batches: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Wall time spent inside the model."""
