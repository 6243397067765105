"""Records of a corpus: its settings, its samples of three levels, and what is held out."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Annotated, Literal

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatMessage
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
    questions: Count = 8
    """Maximum number of questions about a screen."""
    instructions: Count = 6
    """Maximum number of instructions for a screen."""
    messages: Share = 0.5
    """Share of the preferences with messages of neighbours in their prompt."""
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


CORPUS_VERSION = 2

Job = tuple[str, int]
"""Task and seed of a walk."""

Kind = Literal["screen", "element", "instruction", "preference"]


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    environment: str
    task: str
    seed: int
    step: int
    """Step of the walk with this screen, from 0."""
    agent: str
    """Model that wrote the response."""
    adversary: str = ""
    """Model that wrote the rejected response."""
    critic: str = ""
    """Name of the critic that gave the scores."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prompt, a response to learn, and for preferences a rejected response."""

    level: Level
    """1: a question about the screen; 2: an instruction of one step; 3: a preference."""
    kind: Kind
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
        """Hash of level, prompt and responses: equal for equal samples."""
        turns = [f"{turn.role}\x1f{turn.content}" for turn in self.chat]
        parts = [str(self.level), *turns, self.response, self.rejected or ""]
        return short_hash("\x1e".join(parts))


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
    """Tasks, seeds and goals of test and validation splits, of which no training sample may be
    made.

    >>> held_out = HeldOut.of(tasks=["recipes-add"], seeds=[range(20_000_000, 30_000_000)])
    >>> held_out.why("phone (simulated)", "recipes-add", 3)
    "task 'recipes-add' is held out"
    """

    tasks: frozenset[str] = frozenset()
    seeds: tuple[tuple[int, int], ...] = ()
    """First seed of each range, and its last seed plus 1."""
    goals: frozenset[str] = frozenset()
    """Hashes of goals of test tasks."""
    environments: tuple[str, ...] = TEST_ONLY

    @staticmethod
    def of(
        *,
        tasks: Iterable[str] = (),
        seeds: Iterable[range] = (),
        goals: Iterable[str] = (),
        environments: Iterable[str] = TEST_ONLY,
    ) -> HeldOut:
        """
        Args:
            tasks: templates that are held out with all seeds.
            seeds: ranges of seeds, without a step, that are held out in all tasks.
            goals: goals of test tasks; a sample with the same goal (up to case and spaces) is
                dropped and counted, because small parameter spaces contain repeated goals.
            environments: prefixes of the names of environments that are only for testing.

        Raises ``ConfigError`` if one text or range is given in the place of several.
        """
        several = {"tasks": tasks, "seeds": seeds, "goals": goals, "environments": environments}
        for name, given in several.items():
            if isinstance(given, str | range):  # a text is also a sequence of letters
                raise ConfigError(f"HeldOut: {name} must be a list, got {given!r}; use [{given!r}]")
        return HeldOut(
            tasks=frozenset(tasks),
            seeds=tuple((part.start, part.stop) for part in seeds),
            goals=frozenset(_goal(goal) for goal in goals),
            environments=tuple(environments),
        )

    def __or__(self, other: HeldOut) -> HeldOut:
        """The union of two rules: all that one of them holds out."""
        return HeldOut(
            tasks=self.tasks | other.tasks,
            seeds=tuple(dict.fromkeys((*self.seeds, *other.seeds))),
            goals=self.goals | other.goals,
            environments=tuple(dict.fromkeys((*self.environments, *other.environments))),
        )

    def why(self, environment: str, task: str, seed: int) -> str | None:
        """Why an episode is held out; ``None`` if it is not."""
        if environment.startswith(self.environments):
            return f"environment '{environment}' is for testing only"
        if task in self.tasks:
            return f"task '{task}' is held out"
        for first, stop in self.seeds:
            if first <= seed < stop:
                return f"seed {seed} is held out ({first} … {stop - 1})"
        return None

    def check(self, environment: str, jobs: Iterable[tuple[str, int]], where: str) -> None:
        """Raise ``ConfigError`` if one of the jobs is held out; the message names its task."""
        for task, seed in jobs:
            why = self.why(environment, task, seed)
            if why is not None:
                raise ConfigError(
                    f"{where}: task '{task}', seed {seed} would leak a test split into training: "
                    f"{why}. Leave it out"
                )

    def has_goal(self, goal: str) -> bool:
        """Whether a test task has the same goal."""
        return bool(self.goals) and _goal(goal) in self.goals


def _goal(goal: str) -> str:
    return short_hash(" ".join(goal.casefold().split()))
