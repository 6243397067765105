"""Base class of the recorded benchmarks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from swarm_ui.environments.recorded.teacher_forced import GoldStep, TeacherForced
from swarm_ui.errors import ConfigError
from swarm_ui.rollout.episodes import Job

StepT = TypeVar("StepT", bound=GoldStep)


class RecordedBenchmark(ABC, Generic[StepT]):
    """The tasks of one split. An instance can serve any number of environments."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def tasks(self) -> Sequence[str]:
        """Names of the tasks, in the order of the files."""
        ...

    @abstractmethod
    def load(self, task: str) -> Sequence[StepT]:
        """The steps of a task. A page is read when its step's observation is first used.

        Raises:
            ConfigError: there is no such task, or a record is wrong. The message names the record.
        """
        ...

    def environment(self) -> TeacherForced:
        """A new environment. It plays one episode at a time."""
        return TeacherForced(self)

    def jobs(self, tasks: Sequence[str] | None = None) -> list[Job]:
        """Jobs for :func:`~swarm_ui.rollout_many`, one for each task (all tasks by default)."""
        return [(task, 0) for task in (self.tasks if tasks is None else tasks)]


def check_settings(benchmark: str, split: str, splits: Sequence[str], words: int) -> None:
    """Raises ``ConfigError``: the split does not exist, or ``words`` is less than 1."""
    if split not in splits:
        raise ConfigError(f"{benchmark} has the splits {', '.join(splits)}; got {split!r}")
    if words < 1:
        raise ConfigError(f"words must be at least 1, got {words}")
