"""The results of a run, as stored in ``results.json``, and their comparison with another run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import UNREADABLE, ConfigError, Failure, brief
from swarm_ui.files import write_atomic
from swarm_ui.rollout import Job
from swarm_ui.stats import Interval, Measure, Outcome, clustered_mean, paired_difference
from swarm_ui.trace.failures import FailureClass, failure_class
from swarm_ui.trace.records import Episode

RESULTS_VERSION = 2
MOST_MASKED = 0.2
"""Largest share of masked episodes from which something is concluded."""


class Cost(msgspec.Struct, kw_only=True):
    """The cost of a number of episodes."""

    decisions: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Wall time, summed over processes, or over episodes that may have overlapped."""
    lost: int = 0
    """Number of decisions without a usable action because of unusable replies. They count as
    failures."""

    def add(self, episode: Episode) -> None:
        """Add what is recorded in the traces of an episode."""
        self.decisions += len(episode.steps)
        self.seconds += episode.seconds
        for step in episode.steps:
            self.lost += step.trace.action is None
            for call in step.trace.calls:
                if call.model:
                    self.calls += 1
                    self.prompt_tokens += call.usage.prompt_tokens
                    self.completion_tokens += call.usage.completion_tokens

    @classmethod
    def of_episodes(cls, episodes: Iterable[Episode]) -> Cost:
        """The cost that is recorded in the traces."""
        cost = cls()
        for episode in episodes:
            cost.add(episode)
        return cost

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


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one policy on the episodes of one split."""

    split: str
    name: str = ""
    """Name of the file in ``traces/``; empty: the split."""
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
                    f"arm '{self.file}' has {len(self.jobs)} episodes and {len(values)} {what}"
                )

    @classmethod
    def of_episodes(cls, name: str, episodes: Iterable[Episode], **about: Any) -> ArmResult:
        """The result of recorded episodes, which are read one at a time. ``about``: other fields;
        the split is by default ``name``."""
        jobs, outcomes, failures, cost = list[Job](), list[float | None](), [], Cost()
        faults, environment, label, checker = dict[Failure, None](), "", "", 1
        for episode in episodes:
            jobs.append((episode.task, episode.seed))
            outcomes.append(None if episode.success is None else float(episode.success))
            failures.append(failure_class(episode))
            cost.add(episode)
            if episode.fault is not None:
                faults[episode.fault] = None
            environment, label = environment or episode.environment, label or episode.policy
            checker = max(checker, episode.checker)
        found = cls(
            split=name, name=name, label=label, environment=environment, checker=checker,
            jobs=tuple(jobs), outcomes=tuple(outcomes), faults=tuple(faults), work=cost,
            failures=tuple(failures),
        )  # fmt: skip
        return replace(found, **about)

    @classmethod
    def total(cls, arms: Sequence[ArmResult], name: str) -> ArmResult:
        """The episodes of several results as one."""
        complete = all(arm.failures or not arm.jobs for arm in arms)
        return cls(
            split="",
            name=name,
            jobs=tuple(job for arm in arms for job in arm.jobs),
            outcomes=tuple(value for arm in arms for value in arm.outcomes),
            failures=tuple(why for arm in arms for why in arm.failures) if complete else (),
            work=Cost.total(arm.work for arm in arms),
        )

    @property
    def file(self) -> str:
        """Name of the file in ``traces/``."""
        return self.name or self.split

    @property
    def success(self) -> Interval | None:
        """Success with its 95 % interval, clustered by task; ``None``: all episodes are masked."""
        pairs = zip(self.jobs, self.outcomes, strict=True)
        return clustered_mean([Outcome(task, seed, value) for (task, seed), value in pairs])

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


class Results(msgspec.Struct, kw_only=True):
    """All results of a run; saved after every arm, so an interrupted run keeps them."""

    version: int = RESULTS_VERSION
    labels: tuple[str, ...] = ()
    """The parts of the run that are simulated or scripted, in words."""
    arms: list[ArmResult] = []

    @property
    def outcomes(self) -> list[float | None]:
        """Outcomes of all arms."""
        return [value for arm in self.arms for value in arm.outcomes]

    def put(self, result: ArmResult) -> None:
        """Add a result; it replaces an earlier one of the same episodes."""
        by_key = {(a.split, a.name, a.seed): a for a in self.arms}
        by_key[result.split, result.name, result.seed] = result
        self.arms = list(by_key.values())

    def save(self, folder: Path) -> None:
        """Write ``results.json``."""
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
            raw = path.read_bytes()
            version = msgspec.json.decode(raw, type=dict[str, Any]).get("version")
            if version == RESULTS_VERSION:
                return msgspec.json.decode(raw, type=cls)
        except (OSError, *UNREADABLE) as error:
            raise ConfigError(f"'{path}' cannot be read: {brief(error)}") from error
        raise ConfigError(
            f"'{path}' has version {version}; this program reads {RESULTS_VERSION}; open it with "
            "the swarm-ui that wrote it"
        )


def existing_results(folder: Path) -> Results:
    """The results of a run. Raises ``ConfigError`` if it has none."""
    if not (folder / "results.json").exists():
        if not folder.is_dir():
            raise ConfigError(f"there is no folder '{folder}'")
        raise ConfigError(f"'{folder}' is not a run with results: it has no results.json")
    return Results.load(folder)


# -- comparing --------------------------------------------------------------------------------

Key = tuple[str, str, int, int, int]
"""Split, task, seed, version of the success check, and a number that distinguishes repetitions."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two policies on the same episodes of one split, or of all."""

    name: str
    ours: Interval | None
    theirs: Interval | None
    difference: Interval | None
    """First minus second, over the episodes that both played: Tango's score interval."""
    better: int
    """Episodes that only the first one solved."""
    worse: int
    p: float | None
    """Two-sided p-value of McNemar's exact test."""
    masked: int
    """Episodes that a fault masked for at least one. If there are too many of them, there is no
    interval and no p-value."""


def compared(ours: Sequence[ArmResult], theirs: Sequence[ArmResult]) -> list[Comparison]:
    """One row for each split, and one for all if there are several.

    Only episodes of the same split, task, seed and version of the success check are compared; the
    list is empty if there are none.
    """
    a, b = _outcomes(ours), _outcomes(theirs)
    common = [key for key in a if key in b]
    splits = list(dict.fromkeys(key[0] for key in common))
    rows = [
        _comparison(split or "episodes", a, b, [key for key in common if key[0] == split])
        for split in splits
    ]
    return rows if len(rows) < 2 else [*rows, _comparison("all", a, b, common)]


def _outcomes(arms: Sequence[ArmResult]) -> dict[Key, float | None]:
    seen: Counter[tuple[str, Job, int]] = Counter()
    found: dict[Key, float | None] = {}
    for arm in arms:
        for job, value in zip(arm.jobs, arm.outcomes, strict=True):
            found[arm.split, *job, arm.checker, seen[arm.split, job, arm.checker]] = value
            seen[arm.split, job, arm.checker] += 1
    return found


def _comparison(
    name: str, a: dict[Key, float | None], b: dict[Key, float | None], keys: list[Key]
) -> Comparison:
    pairs = [(key, x, y) for key in keys for x, y in [(a[key], b[key])]]
    both = [(key, x, y) for key, x, y in pairs if x is not None and y is not None]
    better, worse = sum(x > y for _, x, y in both), sum(x < y for _, x, y in both)
    ours = [Outcome(key[1], key[2], x) for key, x, _ in both]
    theirs = [Outcome(key[1], key[2], y) for key, _, y in both]
    masked = len(keys) - len(both)
    told = masked <= MOST_MASKED * len(keys)
    return Comparison(
        name=name,
        ours=clustered_mean(ours) if told else None,
        theirs=clustered_mean(theirs) if told else None,
        difference=paired_difference(ours, theirs) if told else None,
        better=better,
        worse=worse,
        p=mcnemar(better, worse) if told else None,
        masked=masked,
    )


def mcnemar(better: int, worse: int) -> float:
    """Two-sided p-value of McNemar's exact test: a sign test on episodes solved by one side
    only."""
    n = better + worse
    tail: int = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    both_tails: float = 2 * tail / 2**n  # of integers: from 1,024 episodes on, 2.0**n is too large
    return min(1.0, both_tails)
