"""Episodes that a person has played, as demonstrations.

The file is what ``swarm-ui play --out`` writes. Only solved episodes are read. Each step shows the
recorded screen; the recorded action is that of the expert and counts as the only right one,
although another may have been as good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environments.recorded.teacher_forced import GoldStep, RecordedBenchmark
from swarm_ui.errors import ConfigError
from swarm_ui.rollout import Job
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import Episode


class DemonstratedStep(GoldStep, frozen=True):
    """A recorded screen, with the actions before it, and the action on it."""

    def values(self, action: Action | None) -> dict[str, float]:
        """Whether the actions are equal. As on the phone, the case of texts does not matter."""
        same = action is not None and _caseless(action).key == _caseless(self.expert).key
        return {"step success": float(same)}


def _caseless(action: Action) -> Action:
    text, app = action.text, action.app_name
    return replace(action, text=text and text.casefold(), app_name=app and app.casefold())


class Recordings(RecordedBenchmark):
    """The solved episodes of a file, by task and seed; the others are left out. If one was
    demonstrated several times, the last counts.

    Raises:
        ConfigError: there is no solved episode, or the episodes come from several environments.
        TraceError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        every = list(iter_jsonl(path))
        solved = [episode for episode in every if episode.success]
        places = sorted({episode.environment for episode in solved})
        if len(places) != 1:
            raise ConfigError(
                f"'{path}' must have solved episodes of one environment, got "
                f"{', '.join(places) or 'none'} ({len(every) - len(solved)} episodes were not "
                "solved); record some with: swarm-ui play ENV TASK --out FILE"
            )
        self.name = f"demonstrations on {places[0]}"
        self.steps = {(one.task, one.seed): tuple(_steps(one)) for one in solved}

    @property
    def tasks(self) -> Sequence[str]:
        return tuple(dict.fromkeys(task for task, _ in self.steps))

    def load(self, task: str, seed: int = 0) -> Sequence[DemonstratedStep]:
        if (task, seed) not in self.steps:
            seeds = ", ".join(str(known) for name, known in self.steps if name == task)
            raise ConfigError(
                f"{self.name}: no demonstration of '{task}' with seed {seed}; it was demonstrated "
                f"with {f'seed {seeds}' if seeds else 'none'}"
            )
        return self.steps[task, seed]

    def jobs(self, tasks: Sequence[str] | None = None) -> list[Job]:
        """Every demonstration, in the order of the file."""
        return [job for job in self.steps if tasks is None or job[0] in tasks]


def _steps(episode: Episode) -> Iterator[DemonstratedStep]:
    for record in episode.steps:
        screen, action = record.trace.observation, record.executed
        if action is not None:
            element = screen.element(action.index)
            if element is not None:
                action = replace(action, target=element.label or None)
            yield DemonstratedStep(observation=screen, expert=action, past=screen.past(action))
