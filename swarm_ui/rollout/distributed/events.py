"""What happens to the workers of a cluster, for displays and records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec


class WorkerEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened to a worker."""

    kind: Literal["waiting", "started", "assigned", "finished", "lost", "given_up"]
    """``waiting``: for resources; ``assigned`` and ``finished``: a job; ``lost``: the worker or its
    node died; ``given_up``: it was lost too often and is not started again."""
    worker: int
    """Number of the worker, from 0; a replacement has the number of the lost worker."""
    at: float
    """Seconds since the epoch, by the clock of the driver."""
    node: str = ""
    """Address of its node; empty while it has none."""
    pid: int = 0
    job: int | None = None
    """Number of the job, for ``assigned``, ``finished`` and jobs that were ``lost``."""
    task: str = ""
    seed: int = 0
    attempt: int = 0
    """How often the job was lost with a worker before."""
    success: bool | None = None
    """Of a finished episode; ``None``: masked."""
    fault: str = ""
    """Of a finished episode; empty: none."""
    text: str = ""
    """A description for people: what is missing, or why a worker was lost."""


OnWorkerEvent = Callable[[WorkerEvent], None]
