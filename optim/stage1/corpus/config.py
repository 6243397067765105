"""Settings of a synthesis. The paper gives no sizes; every default here is ours."""

from __future__ import annotations

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.stage1.corpus.samples import LEVELS
from swarm_ui.prompts import format_named


def check(config: msgspec.Struct, where: str, name: str, wanted: str, fits: bool) -> None:
    """Raise ``ConfigError`` if ``fits`` is false. ``wanted`` says in words what the setting must
    be."""
    if not fits:
        raise ConfigError(f"{where}: '{name}' must be {wanted}, got {getattr(config, name)!r}")


class CorpusConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for making and keeping samples of a walk."""

    levels: tuple[int, ...] = LEVELS
    prompt_format: str = "json"
    """Format of prompts and replies; see :mod:`swarm_ui.prompts`."""
    reasons: bool = True
    """Whether replies give a reason before their action."""
    seed: int = 0
    max_steps: int | None = 30
    """Maximum number of steps of a walk; the environment may end it earlier."""
    stray: float = 0.0
    """Probability of a random action instead of the agent's, so that walks also show the way back.
    Use it only where actions can be undone."""
    agreed: float = 1.0
    """With a walker: share of its right steps that become samples of level 3. All wrong steps
    do."""
    screens: int = 4
    """Maximum number of different screens of a walk for samples of levels 1 and 2."""
    first_screen: float = 0.2
    """Probability that a walk's first screen is among these screens. It is low, because the first
    screens of all walks are similar. This is the value in the method's released code."""
    questions: int = 8
    """Maximum number of questions about a screen."""
    instructions: int = 6
    """Maximum number of instructions for a screen."""
    messages: float = 0.5
    """Share of the preferences with messages of neighbours in their prompt."""
    neighbours: int = 3
    """Maximum number of messages of neighbours."""
    wrong_neighbours: float = 0.4
    """Share of the neighbours' messages that the adversary wrote."""
    attempts: int = 4
    """Maximum number of replies of the adversary for one preference."""
    good_above: float = 0.5
    """An item with a score above it is right."""
    bad_below: float = 0.5
    """An item with a score below it is wrong."""
    repeats: int = 8
    """Maximum number of samples that differ only in the order of the screen's elements."""
    longest_prompt: int = 40_000
    """Maximum number of characters of a sample; longer samples are dropped."""
    longest_response: int = 2_000
    temperature: float = 0.7
    """Temperature for questions, instructions, neighbours and adversary; walks and verdicts: 0."""
    max_tokens: int = 1024
    """Token limit of a list of questions or instructions; a reply with an action may have a
    quarter of it."""

    def __post_init__(self) -> None:
        if not self.levels or not set(self.levels) <= set(LEVELS):
            raise ConfigError(f"corpus: 'levels' must be some of 1, 2 and 3, got {self.levels}")
        format_named(self.prompt_format)
        counts = ("questions", "instructions", "neighbours", "attempts", "repeats")
        for low, names in ((0, ("screens",)), (1, counts), (16, ("max_tokens",))):
            for name in names:
                check(self, "corpus", name, f"at least {low}", getattr(self, name) >= low)
        limited = self.max_steps is None or self.max_steps >= 1
        check(self, "corpus", "max_steps", "at least 1, or none", limited)
        for name in ("stray", "agreed", "first_screen", "messages", "wrong_neighbours"):
            check(self, "corpus", name, "in [0, 1]", 0.0 <= getattr(self, name) <= 1.0)
        if not 0.0 <= self.bad_below <= self.good_above <= 1.0:
            raise ConfigError(
                "corpus: expected 0 <= bad_below <= good_above <= 1, got "
                f"{self.bad_below} and {self.good_above}"
            )
