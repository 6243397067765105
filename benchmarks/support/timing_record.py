"""CPU time of child processes."""

from __future__ import annotations

import resource


def children_seconds() -> float:
    """CPU seconds of the child processes of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
