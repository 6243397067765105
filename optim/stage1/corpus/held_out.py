"""Test and validation splits that a corpus must not contain."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.stage1.corpus.samples import short_hash

TEST_ONLY = ("mind2web test_", "autowebbench ")
"""Prefixes of the names of environments that are only for testing."""


class HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    """Test and validation splits; a walk of one of their tasks or seeds is an error.

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
            seeds: ranges of seeds that are held out in all tasks.
            goals: goals of test tasks; a sample with the same goal (up to case and spaces) is
                dropped and counted, because small parameter spaces contain repeated goals.
            environments: prefixes of the names of environments that are only for testing.

        Raises:
            ConfigError: a range of seeds has a step.
        """
        ranges = tuple(seeds)
        for part in ranges:
            if part.step != 1:
                raise ConfigError(f"held out: a range of seeds must have the step 1, got {part}")
        return HeldOut(
            tasks=frozenset(tasks),
            seeds=tuple((part.start, part.stop) for part in ranges),
            goals=frozenset(_goal(goal) for goal in goals),
            environments=tuple(environments),
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
        """Raises ``ConfigError`` if one of the jobs is held out; the message names its task."""
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
