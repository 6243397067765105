"""The history of each worker of a run, put together from the events of ``workers.jsonl``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, get_args

import msgspec

from swarm_ui.trace.worker_events import WorkerEvent, covered

WorkerState = Literal["waiting", "idle", "playing", "lost", "given_up", "closed"]
Activity = Literal["deciding", "environment", "waiting"]
"""``deciding``: the team and its models; ``waiting``: the worker has a job that it cannot begin, or
waits for resources. The rest of the time a worker has nothing to do."""


class Part(NamedTuple):
    """A period with one activity of a worker; times are seconds since the epoch."""

    what: Activity
    begin: float
    end: float


class WorkerTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The time that some workers spent on each activity, in seconds. Overlapping episodes of a
    worker are counted separately.
    """

    deciding: float = 0.0
    environment: float = 0.0
    waiting: float = 0.0
    idle: float = 0.0
    """There was no job, or the worker was being replaced."""
    calls: float = 0.0
    """The part of ``deciding`` in which a call was under way: of a model, or of another node."""

    @property
    def total(self) -> float:
        """The total time, without counting calls twice."""
        return self.deciding + self.environment + self.waiting + self.idle

    @classmethod
    def of(cls, workers: Iterable[WorkerHistory]) -> WorkerTimes:
        """The sum of these workers' times."""
        found = [worker.times for worker in workers]
        names = cls.__struct_fields__
        return cls(**{name: sum(getattr(times, name) for times in found) for name in names})


class WorkerNow:
    """The state of one worker after the events so far; :meth:`add` takes them in order."""

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self.node = ""
        """Its last node; empty: the process that wrote the file."""
        self.state: WorkerState = "idle"
        self.began, self.at = math.inf, -math.inf
        """When its first and its last event happened, seconds since the epoch."""
        self.text = ""
        """The resource that it waits for, or the reason why it was lost."""
        self.playing: dict[int | None, WorkerEvent] = {}
        """The jobs that it plays now, by number."""

    def add(self, event: WorkerEvent) -> None:
        """Take the next event."""
        self.began, self.at = min(self.began, event.at), max(self.at, event.at)
        self.node = event.node or self.node
        match event.kind:
            case "waiting":
                self.state, self.text = "waiting", event.text
            case "started":
                self.state, self.text = "idle", ""
            case "assigned":
                self.state, self.playing[event.job] = "playing", event
            case "finished":
                self.playing.pop(event.job, None)
                self.state = "playing" if self.playing else "idle"
            case "lost" if event.job is not None:  # told of each of its jobs too
                self.playing.pop(event.job, None)
            case "lost" | "given_up":
                self.state, self.text = event.kind, event.text
                self.playing.clear()
            case "closed":
                if self.state not in ("lost", "given_up"):
                    self.state, self.text = "closed", ""
                self.playing.clear()


class WorkerHistory(WorkerNow):
    """The activities of one worker in one session."""

    def __init__(self, worker: int) -> None:
        super().__init__(worker)
        self.finished: list[WorkerEvent] = []
        """Attempts that ended."""
        self.losses: list[WorkerEvent] = []
        self._waits: list[Part] = []
        self._waiting_since: float | None = None

    def add(self, event: WorkerEvent) -> None:
        """Take the next event."""
        super().add(event)
        if event.kind == "waiting":
            if self._waiting_since is None:
                self._waiting_since = event.at
            return
        if event.kind == "started" and event.queued is not None:
            self._waiting_since = event.queued
        if self._waiting_since is not None:
            self._waits.append(Part("waiting", self._waiting_since, event.at))
            self._waiting_since = None
        if event.kind == "finished":
            self.finished.append(event)
        elif event.kind == "lost" and event.job is None:
            self.losses.append(event)

    @property
    def faults(self) -> int:
        """Attempts that ended with a fault."""
        return sum(bool(event.fault) for event in self.finished)

    @property
    def times(self) -> WorkerTimes:
        """How the worker spent its time."""
        parts = [*self.parts()]
        spent: dict[Activity, float] = dict.fromkeys(get_args(Activity), 0.0)
        for part in parts:
            spent[part.what] += part.end - part.begin
        occupied = covered((part.begin, part.end) for part in parts)
        return WorkerTimes(
            deciding=spent["deciding"],
            environment=spent["environment"],
            waiting=spent["waiting"],
            idle=max(0.0, self.at - min([self.began, *(p.begin for p in parts)]) - occupied),
            calls=sum(event.model for event in self.finished),
        )

    def parts(self) -> Iterator[Part]:
        """The worker's activities over time. Concurrent episodes overlap."""
        yield from self._waits
        for event in self.finished:
            yield from _parts(event)


def sessions(events: Iterable[WorkerEvent]) -> list[list[WorkerHistory]]:
    """The workers of each session by number, the oldest session first; empty ones are left out."""
    found: list[dict[int, WorkerHistory]] = [{}]
    for event in events:
        if event.kind == "session":
            found.append({})
            continue
        history = found[-1].get(event.worker)
        if history is None:
            history = found[-1][event.worker] = WorkerHistory(event.worker)
        history.add(event)
    return [[part[k] for k in sorted(part)] for part in found if part]


def _parts(event: WorkerEvent) -> Iterator[Part]:
    """The parts of one attempt. Without the times of the environment, its share comes first."""
    if event.began is None:
        return
    if event.waited:
        yield Part("waiting", event.began - event.waited, event.began)
    laps = event.laps or (((0.0, event.environment),) if event.environment else ())
    at = event.began
    for after, seconds in laps:
        begin = min(max(at, event.began + after), event.at)
        end = min(begin + seconds, event.at)
        if begin > at:
            yield Part("deciding", at, begin)
        if end > begin:
            yield Part("environment", begin, end)
        at = end
    if event.at > at:
        yield Part("deciding", at, event.at)
