"""Records of a corpus: its settings, its samples of three levels, and what is held out."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Literal

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatMessage
from swarm_ui.optim.config import Count, Natural, Share, check
from swarm_ui.prompts import format_named
from swarm_ui.rollout import Job

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
    stray: Share = 0.0
    """Probability of a random action instead of the agent's, so that walks also show the way back.
    Use it only where actions can be undone."""
    screens: Natural = 4
    """Maximum number of different screens of a walk for samples of levels 1 and 2."""
    questions: Count = 8
    """Maximum number of questions about a screen."""
    instructions: Count = 6
    """Maximum number of instructions for a screen."""
    messages: Share = 0.5
    """Share of the preferences with messages of neighbours in their prompt."""

    def __post_init__(self) -> None:
        if not self.levels or not set(self.levels) <= set(LEVELS):
            raise ConfigError(f"corpus: 'levels' must be some of 1, 2 and 3, got {self.levels}")
        format_named(self.prompt_format)
        check(self, "corpus")


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The walk of a sample, and its step from 0."""

    environment: str
    task: str
    seed: int
    step: int


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt, a response to learn, and for preferences a rejected response."""

    level: Level
    chat: tuple[ChatMessage, ...]
    """The prompt; for levels 2 and 3 it is the prompt of an agent that acts."""
    response: str
    rejected: str | None = None
    """The adversary's response to the same prompt; level 3 only."""
    score: float | None = None
    """The critic's score, in [0, 1]; ``None``: without a critic."""
    rejected_score: float | None = None
    prompt_format: str = "json"
    """The format in which chat and responses are written."""
    heard: int = 0
    """Number of messages of neighbours in the prompt."""
    origin: Origin

    @property
    def id(self) -> str:
        """Hash of level, prompt and response, without case and spaces. The rejected response does
        not count."""
        texts = [str(self.level), *(turn.content for turn in self.chat), self.response]
        return short_hash("\x1e".join(" ".join(text.casefold().split()) for text in texts))


class WalkResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The samples of one walk through an environment; one line of ``walks.jsonl``."""

    task: str
    seed: int
    success: bool | None
    """``None``: the environment failed, and the walk will be repeated."""
    steps: int
    fault: str | None = None
    samples: tuple[Sample, ...] = ()
    dropped: dict[str, int] = {}
    """Number of dropped items, by ``"level <n>: <reason>"``."""


def short_hash(text: str) -> str:
    """16 hex digits of the SHA-256 of a text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


TEST_ONLY = ("mind2web test_", "autowebbench ")
"""Prefixes of the names of environments that are only for testing."""


class HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks and seeds of test and validation splits, of which no training sample may be made.

    >>> held_out = HeldOut.of(tasks=["recipes-add"], seeds=[range(20_000_000, 30_000_000)])
    >>> held_out.why("phone (simulated)", "recipes-add", 3)
    "task 'recipes-add' is held out"
    """

    tasks: frozenset[str] = frozenset()
    seeds: tuple[tuple[int, int], ...] = ()
    """First seed of each range, and its last one plus 1."""

    @staticmethod
    def of(*, tasks: Iterable[str] = (), seeds: Iterable[range] = ()) -> HeldOut:
        """``tasks`` are held out with all seeds, ``seeds`` (ranges without a step) in all tasks.
        Raises ``ConfigError`` if one text or range is given in the place of several."""
        for name, given in (("tasks", tasks), ("seeds", seeds)):
            if isinstance(given, str | range):  # a text is also a sequence of letters
                raise ConfigError(f"HeldOut: {name} must be a list, got {given!r}; use [{given!r}]")
        ranges = tuple((part.start, part.stop) for part in seeds)
        return HeldOut(tasks=frozenset(tasks), seeds=ranges)

    def __or__(self, other: HeldOut) -> HeldOut:
        """The union of two rules: all that one of them holds out."""
        seeds = tuple(dict.fromkeys((*self.seeds, *other.seeds)))
        return HeldOut(tasks=self.tasks | other.tasks, seeds=seeds)

    def why(self, environment: str, task: str, seed: int) -> str | None:
        """Why an episode is held out; ``None`` if it is not. Environments that are only for testing
        always are."""
        if environment.startswith(TEST_ONLY):
            return f"environment '{environment}' is for testing only"
        if task in self.tasks:
            return f"task '{task}' is held out"
        for first, stop in self.seeds:
            if first <= seed < stop:
                return f"seed {seed} is held out ({first} … {stop - 1})"
        return None

    def check(self, environment: str, jobs: Iterable[Job], where: str) -> None:
        """Raise ``ConfigError`` if one of the jobs is held out; the message names its task."""
        for task, seed in jobs:
            why = self.why(environment, task, seed)
            if why is not None:
                raise ConfigError(
                    f"{where}: task '{task}', seed {seed} would leak a test split into training: "
                    f"{why}. Leave it out"
                )
