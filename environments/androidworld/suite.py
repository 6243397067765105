"""An AndroidWorld suite as jobs, and a journal to continue an interrupted suite.

todo = suite(tasks, combinations=2, seed=30)
journal = Journal(Path("runs/androidworld.jsonl"))
async for _, episode in rollouts.stream(policy, journal.left(todo)):
    journal.add(episode)
print(journal.score())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.files import append_line, whole_lines
from swarm_ui.trace.records import Episode

Job = tuple[str, int]
"""Task and seed."""


def suite(
    tasks: Iterable[str], *, combinations: int = 1, seed: int = 30, identical: bool = False
) -> list[Job]:
    """Upstream's suite for a seed: the same tasks with the same parameters, in the same order.

    Args:
        tasks: names of the tasks.
        combinations: number of instances of each task, with different parameters.
        seed: seed of the suite.
        identical: give all instances of a task the parameters of its first instance.
    """
    if combinations < 1:
        raise ConfigError(f"suite: 'combinations' must be at least 1, got {combinations}")
    names = sorted(tasks)
    return [
        (name, instance_seed(seed, name, 0 if identical else k))
        for name in names
        for k in range(combinations)
    ]


def instance_seed(seed: int, task: str, number: int) -> int:
    """Upstream's seed of an instance of a task."""
    return int(sha256(f"{seed}_{task}_{number}".encode()).hexdigest(), 16) % 2**32


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished episode."""

    task: str
    seed: int
    success: bool | None
    """``None`` after a fault. The job is then played again."""
    steps: int
    fault: str | None = None


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The score of the episodes without a fault."""

    tasks: int
    episodes: int
    mean: float
    """Mean over tasks of each task's success rate, as upstream reports it."""
    by_task: dict[str, float]


class Journal:
    """The finished episodes as lines of JSON. Each is written as soon as it ends.

    Raises:
        ConfigError: a line cannot be read. A last line that was cut off is dropped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: list[Entry] = []
        for number, line in enumerate(whole_lines(path), start=1):
            try:
                self.entries.append(msgspec.json.decode(line, type=Entry))
            except msgspec.DecodeError as error:
                raise ConfigError(f"{path}, line {number}: {error}") from error

    def left(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs that are not finished. A job that occurs twice must be played twice."""
        done = Counter((one.task, one.seed) for one in self.entries if one.success is not None)
        found: list[Job] = []
        for job in jobs:
            if done[job]:
                done[job] -= 1
            else:
                found.append(job)
        return found

    def add(self, episode: Episode) -> None:
        """Append an episode."""
        entry = Entry(
            task=episode.task,
            seed=episode.seed,
            success=episode.success,
            steps=len(episode.steps),
            fault=None if episode.fault is None else str(episode.fault),
        )
        self.entries.append(entry)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self._path, msgspec.json.encode(entry))

    def score(self) -> Score:
        """Success rates so far, without the episodes that ended with a fault."""
        by_task: dict[str, list[bool]] = {}
        for entry in self.entries:
            if entry.success is not None:
                by_task.setdefault(entry.task, []).append(entry.success)
        shares = {task: sum(done) / len(done) for task, done in sorted(by_task.items())}
        return Score(
            tasks=len(shares),
            episodes=sum(len(done) for done in by_task.values()),
            mean=sum(shares.values()) / len(shares) if shares else 0.0,
            by_task=shares,
        )
