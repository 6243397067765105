"""The assignment of adapters to processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Spread = Literal["auto", "adapters", "batches"]
"""The way in which processes share the updates of an iteration. ``adapters``: each process trains
some of the adapters alone, which needs no communication in between. ``batches``: all processes
train one adapter after another, each on a part of every batch. ``auto``: ``adapters`` if there is
at least one for each process, else ``batches``."""


def spread_of(wanted: Spread, adapters: int, processes: int, *, sharded: bool = False) -> Spread:
    """Choose between sharing by ``adapters`` and by ``batches``.

    Args:
        wanted: the setting.
        adapters: the number of adapters that are trained.
        processes: the number of processes.
        sharded: whether each process holds a part of the base model only. Then all of them take
            part in every forward, so batches are divided regardless of the setting.
    """
    if sharded:
        return "batches"
    if wanted != "auto":
        return wanted
    return "adapters" if adapters >= processes else "batches"


def assigned(work: Sequence[float], processes: int) -> list[int]:
    """Assign pieces of work to processes so that no process has much more work than the others.

    The pieces are assigned from the largest to the smallest, each to the process with the least
    work so far.
    """
    load = [0.0] * processes
    found = [0] * len(work)
    for k in sorted(range(len(work)), key=lambda k: -work[k]):
        least = min(range(processes), key=load.__getitem__)
        found[k] = least
        load[least] += work[k]
    return found
