"""Episodes that a person has played, as demonstrations.

The file is what ``swarm-ui play --out`` or a
:class:`~swarm_ui.environments.wrappers.recorder.Recorder` writes. Only solved episodes are read.
Each step shows the recorded screen; the recorded action is that of the expert and counts as the
only right one, although another action may have been as good.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environments.recorded.teacher_forced import RecordedBenchmark, TeacherForced
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import Episode

Job = tuple[str, int]


@dataclass(frozen=True, slots=True)
class DemonstratedStep:
    """A recorded screen, with the actions before it, and the action on it."""

    observation: Observation
    action: Action

    @property
    def past(self) -> Past:
        return self.observation.past(self.action)

    def right(self, action: Action) -> bool:
        """Whether the actions are equal. As on the phone, the case of texts does not matter."""
        return _caseless(action).key == _caseless(self.action).key

    def expert(self) -> Action:
        return self.action

    def remark(self, action: Action) -> str:
        return ""


def _caseless(action: Action) -> Action:
    text = None if action.text is None else action.text.casefold()
    app = None if action.app_name is None else action.app_name.casefold()
    return replace(action, text=text, app_name=app)


class Recordings(RecordedBenchmark[DemonstratedStep]):
    """Demonstrations by task and seed. If one was demonstrated several times, the last counts."""

    def __init__(self, name: str, steps: Iterable[tuple[Job, Sequence[DemonstratedStep]]]) -> None:
        self._name = name
        self.steps = {job: tuple(found) for job, found in steps}

    @property
    def name(self) -> str:
        return self._name

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(dict.fromkeys(task for task, _ in self.steps))

    def load(self, task: str) -> Sequence[DemonstratedStep]:
        """The steps of a key that :func:`key_of` gave."""
        name, _, seed = task.rpartition("\n")
        found = self.steps.get((name, int(seed)))
        if found is None:
            seeds = [str(known) for other, known in self.steps if other == name]
            has = f"it was demonstrated with seed {', '.join(seeds)}" if seeds else "it has none"
            raise ConfigError(f"{self.name}: no demonstration of '{name}' with seed {seed}; {has}")
        return found

    def environment(self) -> TeacherForced:
        return Demonstrations(self)

    def jobs(self, tasks: Sequence[str] | None = None) -> list[Job]:
        """Every demonstration, in the order of the file."""
        return [job for job in self.steps if tasks is None or job[0] in tasks]


class Demonstrations(TeacherForced):
    """Recordings as an environment. A task can be reset with the seeds it was recorded with."""

    def begin(self, task: str, rng: random.Random) -> str:
        return super().begin(key_of(task, self.seed), rng)


def key_of(task: str, seed: int) -> str:
    return f"{task}\n{seed}"


def read_demonstrations(path: Path) -> tuple[Recordings, str, int]:
    """The solved episodes of a file.

    Returns:
        the recordings, the name of the environment they were recorded in, and the number of
        episodes that were left out because they were not solved.

    Raises:
        ConfigError: there is no solved episode, or the episodes come from several environments.
        TraceError: the file cannot be read.
    """
    found: list[Episode] = []
    left_out = 0
    for episode in iter_jsonl(path):
        if episode.success:
            found.append(episode)
        else:
            left_out += 1
    if not found:
        raise ConfigError(
            f"'{path}' has no solved episode ({left_out} were not solved); record some with: "
            "swarm-ui play ENV TASK --out FILE"
        )
    places = sorted({episode.environment for episode in found})
    if len(places) > 1:
        raise ConfigError(
            f"'{path}' has episodes of several environments ({', '.join(places)}); put the "
            "episodes of each environment into a separate file"
        )
    pairs = [((episode.task, episode.seed), _steps(episode)) for episode in found]
    return Recordings(f"demonstrations on {places[0]}", pairs), places[0], left_out


def _steps(episode: Episode) -> list[DemonstratedStep]:
    steps = []
    for record in episode.steps:
        screen = record.trace.observation
        if record.executed is not None:
            element = screen.element(record.executed.index)
            target = record.executed.target if element is None else element.label or None
            steps.append(DemonstratedStep(screen, replace(record.executed, target=target)))
    return steps
