"""Settings of a corpus."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.settings import Count, Natural, Share, check
from swarm_ui.prompts import format_named

Level = Literal[1, 2, 3]
LEVELS: tuple[Level, ...] = (1, 2, 3)
"""1: questions about screens; 2: instructions of one step; 3: preferences."""


class CorpusConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for making and keeping samples. The paper gives no sizes; all defaults are ours."""

    levels: tuple[int, ...] = LEVELS
    prompt_format: str = "json"
    """Format of prompts and replies; see :mod:`swarm_ui.prompts`."""
    reasons: bool = True
    """Whether replies give a reason before their action."""
    seed: int = 0
    max_steps: Count | None = 30
    """Maximum number of steps of a walk; the environment may end it earlier."""
    stray: Share = 0.0
    """Probability of a random action instead of the agent's, so that walks also show the way back.
    Use it only where actions can be undone."""
    screens: Natural = 4
    """Maximum number of different screens of a walk for samples of levels 1 and 2."""
    first_screen: Share = 0.2
    """Probability that a walk's first screen is among these screens. It is low, because the first
    screens of all walks are similar. This is the value in the method's released code."""
    questions: Count = 8
    """Maximum number of questions about a screen."""
    instructions: Count = 6
    """Maximum number of instructions for a screen."""
    messages: Share = 0.5
    """Share of the preferences with messages of neighbours in their prompt."""
    neighbours: Count = 3
    """Maximum number of messages of neighbours."""
    wrong_neighbours: Share = 0.4
    """Share of the neighbours' messages that the adversary wrote."""
    attempts: Count = 4
    """Maximum number of replies of the adversary for one preference."""
    good_above: Share = 0.5
    """An item with a score above it is right."""
    bad_below: Share = 0.5
    """An item with a score below it is wrong."""
    repeats: Count = 8
    """Maximum number of samples that differ only in the order of the screen's elements."""
    longest_prompt: int = 40_000
    """Maximum number of characters of a sample; longer samples are dropped."""
    longest_response: int = 2_000
    temperature: float = 0.7
    """Temperature for questions, instructions, neighbours and adversary; walks and verdicts: 0."""
    max_tokens: Annotated[int, msgspec.Meta(ge=16)] = 1024
    """Token limit of a list of questions or instructions; a reply with an action may have a
    quarter of it."""

    def __post_init__(self) -> None:
        if not self.levels or not set(self.levels) <= set(LEVELS):
            raise ConfigError(f"corpus: 'levels' must be some of 1, 2 and 3, got {self.levels}")
        format_named(self.prompt_format)
        check(self, "corpus")
        if self.bad_below > self.good_above:
            raise ConfigError(
                f"corpus: bad_below ({self.bad_below}) must not exceed good_above "
                f"({self.good_above})"
            )
