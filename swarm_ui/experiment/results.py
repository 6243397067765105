"""What was measured, as it stands in ``results.json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.arms import BASE, ORDER, TRAINED
from swarm_ui.graph.topology import Edge
from swarm_ui.rollout.episodes import Job
from swarm_ui.stats import Interval, paired_difference, wilson
from swarm_ui.storage.run_directory import write_atomic

RESULTS_VERSION = 1


class Work(msgspec.Struct, kw_only=True):
    """What some episodes cost."""

    decisions: int = 0
    calls: int = 0
    scored: int = 0
    """Replies whose probability was asked for, by votes."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model_seconds: float = 0.0
    """Wall time inside the model; 0 for served models."""
    seconds: float = 0.0
    """Wall time, summed over processes."""

    def add(self, other: Work) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def calls_per_decision(self) -> float:
        return self.calls / self.decisions if self.decisions else 0.0

    @property
    def tokens_per_second(self) -> float:
        tokens = self.prompt_tokens + self.completion_tokens
        return tokens / self.seconds if self.seconds else 0.0

    @property
    def model_share(self) -> float:
        """Of the wall time; at most 1 where episodes do not overlap with other work."""
        return self.model_seconds / self.seconds if self.seconds else 0.0


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """One policy on the episodes of one split."""

    split: str
    environment: str
    arm: str
    label: str
    jobs: tuple[Job, ...]
    outcomes: tuple[float | None, ...]
    """One an episode, in the order of ``jobs``; ``None``: masked by a fault."""
    edges: tuple[Edge, ...] = ()
    work: Work

    @property
    def success(self) -> Interval | None:
        return wilson(self.outcomes)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table."""

    split: str
    arm: str
    label: str
    success: Interval | None
    masked: int
    to_base: Interval | None
    """Paired difference to the base agent, greedy, on the same episodes."""
    to_trained: Interval | None
    """Paired difference to the trained agent, greedy, on the same episodes."""
    calls_per_decision: float


class Results(msgspec.Struct, kw_only=True):
    """All of a run; saved after every arm, so that an interrupted run keeps what it has."""

    version: int = RESULTS_VERSION
    labels: tuple[str, ...] = ()
    """What is not the real thing."""
    splits: dict[str, str] = {}
    """What each split holds out."""
    notes: tuple[str, ...] = ()
    arms: list[ArmResult] = []
    table: list[Row] = []
    rollouts: Work | None = None
    """Of stage 2; ``None``: nothing was trained."""
    training_cpu_seconds: float = 0.0

    def find(self, split: str, arm: str) -> ArmResult | None:
        return next((a for a in self.arms if (a.split, a.arm) == (split, arm)), None)

    def rows(self) -> list[Row]:
        """The table, computed from the outcomes."""
        return [self._row(arm) for arm in self.arms]

    def sort(self, splits: Sequence[str]) -> None:
        """Put the arms in the order of tables; they came in the order they were finished."""
        place = {name: k for k, name in enumerate(ORDER)}
        self.arms.sort(key=lambda a: (splits.index(a.split), place.get(a.arm, len(place))))

    def save(self, folder: Path) -> None:
        self.table = self.rows()
        raw = msgspec.json.format(msgspec.json.encode(self), indent=1)
        write_atomic(folder / "results.json", raw + b"\n")

    @classmethod
    def load(cls, folder: Path) -> Results:
        """What a run has so far; empty if there is nothing.

        Raises:
            ConfigError: not a file of this version.
        """
        path = folder / "results.json"
        if not path.exists():
            return cls()
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"'{path}' cannot be read: {error}") from error
        if found.version != RESULTS_VERSION:
            raise ConfigError(
                f"'{path}' has version {found.version}, this script reads {RESULTS_VERSION}"
            )
        return found

    def _row(self, arm: ArmResult) -> Row:
        return Row(
            split=arm.split,
            arm=arm.arm,
            label=arm.label,
            success=arm.success,
            masked=sum(value is None for value in arm.outcomes),
            to_base=self._difference(arm, BASE),
            to_trained=self._difference(arm, TRAINED) if arm.arm.startswith("trained") else None,
            calls_per_decision=arm.work.calls_per_decision,
        )

    def _difference(self, arm: ArmResult, other: str) -> Interval | None:
        against = self.find(arm.split, other)
        if against is None or against is arm or against.jobs != arm.jobs:
            return None
        return paired_difference(arm.outcomes, against.outcomes)


def split_order(arms: Sequence[ArmResult]) -> list[str]:
    """Splits in the order they were measured."""
    return list(dict.fromkeys(arm.split for arm in arms))
