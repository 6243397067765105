"""Events of the workers of a run with their times: ``workers.jsonl``, beside the traces.

    {"kind":"started","worker":0,"at":1769869529.02,"node":"10.0.0.5"}
    {"kind":"assigned","worker":0,"at":1769869530.12,"job":0,"task":"clock-set","seed":7}
    {"kind":"finished","worker":0,"at":1769869533.5,"job":0,"task":"clock-set","seed":7,
     "success":true,"queued":1769869529.0,"began":1769869530.12,"model":2.91,"environment":0.4,
     "laps":[[0.0,0.3],[3.2,0.1]]}

A worker is a place of a pool of this process, or an actor on any machine of a cluster. All times
come from the clock of the process that keeps the file; a worker of another machine reports only
durations. The file explains where time went. No result depends on it, so a line that cannot be read
is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from swarm_ui.errors import UNREADABLE
from swarm_ui.storage.durable import whole_lines
from swarm_ui.trace.records import Episode

WORKER_FILE = "workers.jsonl"
MOST_LAPS = 200
"""An episode with more operations of the environment is recorded without the time of each."""

Laps = tuple[tuple[float, float], ...]
"""Operations of an environment: seconds after the attempt began, and the duration in seconds."""

WorkerEventKind = Literal[
    "session", "waiting", "started", "assigned", "finished", "lost", "given_up", "closed"
]  # fmt: skip


class WorkerEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Something that happened to a worker."""

    kind: WorkerEventKind
    """``session``: a process began to work on the run, and the workers before it are gone;
    ``waiting``: for resources; ``assigned`` and ``finished``: a job; ``lost``: the worker or its
    node died; ``given_up``: it was lost too often and is not started again; ``closed``: it is not
    needed any more."""
    worker: int
    """Number of the worker, from 0; a replacement has the number of the lost worker. -1: none."""
    at: float
    """Seconds since the epoch, by the clock of the process that keeps the file."""
    node: str = ""
    """Address of its node; empty: this process, or it has none yet."""
    pid: int = 0
    trace: str = ""
    """Name of the trace file of the job's episode, without the suffix."""
    job: int | None = None
    """Number of the job, for ``assigned``, ``finished`` and jobs that were ``lost``."""
    task: str = ""
    seed: int = 0
    attempt: int = 0
    """Number of times that the job was lost with a worker before."""
    success: bool | None = None
    """Outcome of a finished episode; ``None``: masked."""
    fault: str = ""
    """Fault of a finished episode; empty: none."""
    text: str = ""
    """A description for people: what is missing, or why a worker was lost."""
    queued: float | None = None
    """Time at which a job that is now finished was given to the worker, or at which a worker that
    now started was requested, in seconds since the epoch. ``None`` if it was not recorded."""
    began: float | None = None
    """Time at which the worker began to play the episode, with its environment ready. ``None`` if
    it could not begin, or the time was not recorded."""
    model: float = 0.0
    """Seconds of the episode in which a call of a model or of another node of the team ran."""
    environment: float = 0.0
    """Seconds of the episode that the environment needed for its reset and its steps."""
    laps: Laps = ()
    """Periods in which the environment was busy; empty: not recorded, see :data:`MOST_LAPS`."""

    @property
    def waited(self) -> float:
        """Seconds from when a finished job was given to the worker until it began."""
        if self.queued is None or self.began is None:
            return 0.0
        return max(0.0, self.began - self.queued)


OnWorkerEvent = Callable[[WorkerEvent], None]

_LINES = msgspec.json.Decoder(WorkerEvent)


def read_worker_events(folder: Path) -> list[WorkerEvent]:
    """The events of a run's folder in the order they were recorded; empty if there are none."""
    try:
        lines = whole_lines(folder / WORKER_FILE)
    except OSError:
        return []
    return list(_readable(lines))


def _readable(lines: Iterable[bytes]) -> Iterator[WorkerEvent]:
    for line in lines:
        try:
            yield _LINES.decode(line)
        except UNREADABLE:
            continue


def seconds_in_calls(episode: Episode) -> float:
    """Seconds of an episode in which at least one call of its team was under way."""
    return sum(
        covered((call.started, call.ended) for call in step.trace.calls) for step in episode.steps
    )


def covered(parts: Iterable[tuple[float, float]]) -> float:
    """The length of the union of intervals."""
    length, until = 0.0, float("-inf")
    for start, end in sorted(parts):
        length += max(0.0, end - max(start, until))
        until = max(until, end)
    return length
