"""Settings of a synthesis. The paper gives no sizes: every number here is a default of ours."""

from __future__ import annotations

import msgspec

from swarm_ui.errors import ConfigError


class CorpusConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is made of a walk, and what is good enough to be kept."""

    levels: tuple[int, ...] = (1, 2, 3)
    seed: int = 0
    max_steps: int | None = 30
    """Most steps of a walk, if the environment does not end it before."""
    stray: float = 0.0
    """Probability that a random act is executed in a walk instead of the agent's, so that the way
    back is walked too. Needs a world whose damage can be undone."""
    screens: int = 4
    """Most different screens of a walk that levels 1 and 2 ask about."""
    first_screen: float = 0.2
    """Probability that a walk's first screen is among them: it is much the same in all walks.
    The value in the method's released code."""
    questions: int = 8
    """Most questions about a screen."""
    instructions: int = 6
    """Most instructions for a screen."""
    messages: float = 0.5
    """Share of the preferences with neighbours' messages in their context."""
    neighbours: int = 3
    """Most of them."""
    wrong_neighbours: float = 0.4
    """Share of the neighbours' messages that the adversary wrote."""
    attempts: int = 4
    """Most proposals asked of the adversary for one preference."""
    good_above: float = 0.5
    """A score above it is right."""
    bad_below: float = 0.5
    """A score below it is wrong."""
    repeats: int = 8
    """Most samples that differ in the order of the screen's elements alone."""
    longest_prompt: int = 40_000
    """Characters; what is longer is dropped."""
    longest_response: int = 2_000
    temperature: float = 0.7
    """Of questions, instructions, neighbours and adversary; walks and verdicts are greedy."""
    max_tokens: int = 1024
    """Longest list of questions or instructions; a reply to act is a quarter of it at most."""

    def __post_init__(self) -> None:
        if not self.levels or not set(self.levels) <= {1, 2, 3}:
            raise ConfigError(f"corpus: 'levels' must be some of 1, 2 and 3, got {self.levels}")
        for name in ("stray", "first_screen", "messages", "wrong_neighbours"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ConfigError(f"corpus: '{name}' must be in [0, 1], got {value}")
        least = {"screens": 0, "questions": 1, "instructions": 1, "neighbours": 1, "attempts": 1,
                 "repeats": 1, "max_tokens": 16}  # fmt: skip
        for name, low in least.items():
            if getattr(self, name) < low:
                raise ConfigError(
                    f"corpus: '{name}' must be at least {low}, got {getattr(self, name)}"
                )
        if not 0.0 <= self.bad_below <= self.good_above <= 1.0:
            raise ConfigError(
                "corpus: expected 0 <= bad_below <= good_above <= 1, got "
                f"{self.bad_below} and {self.good_above}"
            )
