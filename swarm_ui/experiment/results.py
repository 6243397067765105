"""The results of a run, as stored in ``results.json``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.action import unfit
from swarm_ui.environments.recorded.measures import Measure
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.files import write_atomic
from swarm_ui.graph.topology import Edge
from swarm_ui.rollout import Job
from swarm_ui.stats import Interval, Outcome, clustered_mean, paired_difference
from swarm_ui.trace.failures import FailureClass
from swarm_ui.trace.records import Episode, StepRecord

RESULTS_VERSION = 2
MOST_MASKED = 0.2
"""Largest share of masked episodes from which something is concluded."""
BASE = "base-greedy"
TRAINED = "trained-greedy"
GENERAL = "general-greedy"
ORDER = (
    BASE, "base-guard", "base-shuffled", "base-clones", "base-vote", "base-team", GENERAL,
    TRAINED, "trained-vote", "trained-team",
)  # fmt: skip
"""Order of the rows of tables. The last one is the headline of a report."""


def success_interval(jobs: Sequence[Job], outcomes: Sequence[float | None]) -> Interval | None:
    """Success with its 95 % interval, clustered by task; ``None`` if all episodes are masked."""
    return clustered_mean(_by_task(jobs, outcomes))


def difference_interval(
    jobs: Sequence[Job], ours: Sequence[float | None], theirs: Sequence[float | None]
) -> Interval | None:
    """Ours minus theirs on the same episodes, clustered by task."""
    return paired_difference(_by_task(jobs, ours), _by_task(jobs, theirs))


def _by_task(jobs: Sequence[Job], outcomes: Sequence[float | None]) -> list[Outcome]:
    pairs = zip(jobs, outcomes, strict=True)
    return [Outcome(task, seed, value) for (task, seed), value in pairs]


def lost_by_model(step: StepRecord) -> bool:
    """Whether the team made no decision that could be executed. This counts as a failure of the
    models."""
    return step.trace.action is None or unfit(step.trace.action) is not None


class Cost(msgspec.Struct, kw_only=True):
    """The cost of a number of episodes."""

    decisions: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model_seconds: float = 0.0
    """Wall time inside the model; 0 where it is not measured: for served models, and for episodes
    whose cost comes from their traces."""
    seconds: float = 0.0
    """Wall time, summed over processes, or over episodes that may have overlapped."""
    lost: int = 0
    """Number of decisions without a usable action because of unusable replies. They count as
    failures."""

    @classmethod
    def of_episodes(cls, episodes: Iterable[Episode]) -> Cost:
        """The cost that is recorded in the traces."""
        cost = cls()
        for episode in episodes:
            cost.decisions += len(episode.steps)
            cost.seconds += episode.seconds
            for step in episode.steps:
                cost.lost += lost_by_model(step)
                for call in step.trace.calls:
                    if call.model:
                        cost.calls += 1
                        cost.prompt_tokens += call.usage.prompt_tokens
                        cost.completion_tokens += call.usage.completion_tokens
        return cost

    @classmethod
    def of_model(
        cls,
        model: Any,
        before: Cost | None = None,
        episodes: Iterable[Episode] = (),
        seconds: float = 0.0,
    ) -> Cost:
        """The work of an in-process model so far, or since ``before``, in these episodes."""
        counters, old = model.counters, before or Cost()
        return cls(
            decisions=sum(len(episode.steps) for episode in episodes),
            calls=counters.calls - old.calls,
            prompt_tokens=counters.prompt_tokens - old.prompt_tokens,
            completion_tokens=counters.completion_tokens - old.completion_tokens,
            model_seconds=counters.seconds - old.model_seconds,
            seconds=seconds,
        )

    @classmethod
    def total(cls, costs: Iterable[Cost]) -> Cost:
        """The sum of several costs."""
        found = list(costs)
        names = cls.__struct_fields__
        return cls(**{name: sum(getattr(cost, name) for cost in found) for name in names})

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def calls_per_decision(self) -> float:
        return self.calls / self.decisions if self.decisions else 0.0

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0

    @property
    def model_share(self) -> float:
        """Share of the wall time; at most 1 where episodes do not overlap with other work."""
        return self.model_seconds / self.seconds if self.seconds else 0.0


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one policy on the episodes of one split."""

    split: str
    arm: str = ""
    """Short name of the policy; empty if the run has only one."""
    name: str = ""
    """Name of the file in ``traces/``; empty: split and arm."""
    label: str = ""
    """A description of the policy."""
    environment: str = ""
    checker: int = 1
    """Version of the environment's success check; results from before it was kept count as 1."""
    seed: int = 0
    """Seed for choosing the episodes."""
    jobs: tuple[Job, ...] = ()
    outcomes: tuple[float | None, ...] = ()
    """The outcome of each episode, in the order of ``jobs``; ``None``: a fault masked the
    episode."""
    faults: tuple[Failure, ...] = ()
    """The different faults, each once."""
    edges: tuple[Edge, ...] = ()
    work: Cost = msgspec.field(default_factory=Cost)
    measures: tuple[Measure, ...] = ()
    """The benchmark's own measures, if it has any."""
    failures: tuple[FailureClass | None, ...] = ()
    """Why each episode failed, in the order of ``jobs``; ``None``: it was solved. Empty in results
    from before failures were classified."""

    def __post_init__(self) -> None:
        for what, values in (("outcomes", self.outcomes), ("failures", self.failures or self.jobs)):
            if len(values) != len(self.jobs):
                raise ValueError(
                    f"arm '{self.name or f'{self.split}-{self.arm}'}' has {len(self.jobs)} "
                    f"episodes and {len(values)} {what}"
                )

    @property
    def success(self) -> Interval | None:
        return success_interval(self.jobs, self.outcomes)

    @property
    def solved(self) -> int:
        return sum(value == 1.0 for value in self.outcomes)

    @property
    def masked(self) -> int:
        return sum(value is None for value in self.outcomes)

    @property
    def counted(self) -> int:
        return len(self.outcomes) - self.masked

    def concludes(self, most: float) -> bool:
        """Whether at most this share of the episodes is masked."""
        return self.masked <= most * len(self.outcomes)


def in_order(jobs: Sequence[Job], episodes: Iterable[Episode]) -> list[Episode]:
    """Episodes in the order of their jobs; there may be fewer."""
    pending: dict[Job, list[Episode]] = {}
    for episode in episodes:
        pending.setdefault((episode.task, episode.seed), []).append(episode)
    return [pending[job].pop(0) for job in jobs if pending.get(job)]


def outcome(episode: Episode) -> float | None:
    """1 for success, 0 for failure, ``None`` for an episode that a fault masks."""
    return None if episode.success is None else float(episode.success)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the results table: a policy on a split."""

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
    """All results of a run; saved after every arm, so an interrupted run keeps them."""

    version: int = RESULTS_VERSION
    labels: tuple[str, ...] = ()
    """The parts of the run that are simulated or scripted, in words."""
    splits: dict[str, str] = {}
    """For each split, what is held out in it, in words."""
    notes: tuple[str, ...] = ()
    arms: list[ArmResult] = []
    table: list[Row] = []
    rollouts: Cost | None = None
    """Cost of stage 2; ``None``: nothing was trained."""
    training_cpu_seconds: float = 0.0

    @property
    def outcomes(self) -> list[float | None]:
        """Outcomes of all arms."""
        return [value for arm in self.arms for value in arm.outcomes]

    def find(self, split: str, arm: str) -> ArmResult | None:
        return next((a for a in self.arms if (a.split, a.arm) == (split, arm)), None)

    def put(self, result: ArmResult) -> None:
        """Add a result; it replaces an earlier one of the same episodes."""
        by_key = {(a.split, a.arm, a.seed): a for a in self.arms}
        by_key[result.split, result.arm, result.seed] = result
        self.arms = list(by_key.values())

    def rows(self) -> list[Row]:
        """The table, computed from the outcomes."""
        return [
            Row(
                split=arm.split,
                arm=arm.arm,
                label=arm.label,
                success=arm.success,
                masked=arm.masked,
                to_base=self._difference(arm, BASE),
                to_trained=self._difference(arm, TRAINED)
                if arm.arm.startswith("trained")
                else None,
                calls_per_decision=arm.work.calls_per_decision,
            )
            for arm in self.arms
        ]

    def sort(self, splits: Sequence[str]) -> None:
        """Sort the arms in the order of tables; they were added when they finished."""
        place = {name: k for k, name in enumerate(ORDER)}
        self.arms.sort(key=lambda a: (splits.index(a.split), place.get(a.arm, len(place))))

    def save(self, folder: Path) -> None:
        """Write ``results.json``."""
        self.table = self.rows()
        raw = msgspec.json.format(msgspec.json.encode(self), indent=1)
        write_atomic(folder / "results.json", raw + b"\n")

    @classmethod
    def load(cls, folder: Path) -> Results:
        """The results of a run so far; empty if there are none.

        Raises:
            ConfigError: the file is damaged or of an unknown version.
        """
        path = folder / "results.json"
        if not path.exists():
            return cls()
        try:
            document = msgspec.json.decode(path.read_bytes())
            if document["version"] != RESULTS_VERSION:
                raise ConfigError(
                    f"'{path}' has version {document['version']}; this program reads "
                    f"{RESULTS_VERSION}; open it with the swarm-ui that wrote it"
                )
            return msgspec.convert(document, cls)
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigError(f"'{path}' cannot be read: {error}") from error

    def _difference(self, arm: ArmResult, other: str) -> Interval | None:
        against = self.find(arm.split, other)
        if against is None or against is arm or against.jobs != arm.jobs:
            return None
        return difference_interval(arm.jobs, arm.outcomes, against.outcomes)


def existing_results(folder: Path) -> Results:
    """The results of a run. Raises ``ConfigError`` if it has none."""
    if not (folder / "results.json").exists():
        if not folder.is_dir():
            raise ConfigError(f"there is no folder '{folder}'")
        raise ConfigError(f"'{folder}' is not a run with results: it has no results.json")
    return Results.load(folder)
