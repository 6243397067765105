"""CPU time and memory of processes."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

import psutil

IDLE_CORES = 0.15
"""Most cores that other processes may use, on average, while figures are measured that are kept."""


def cpu_seconds(processes: Iterable[psutil.Process]) -> dict[int, float]:
    """CPU seconds of each living process so far."""
    found = {}
    for process in processes:
        with contextlib.suppress(psutil.Error):  # it has just ended
            used = process.cpu_times()
            found[process.pid] = used.user + used.system
    return found


def family() -> list[psutil.Process]:
    """This process and those below it."""
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def own_cpu() -> float:
    """CPU seconds of this process, of those below it, and of children that have ended."""
    ended = os.times()
    return sum(cpu_seconds(family()).values()) + ended.children_user + ended.children_system


class OtherLoad:
    """The CPU time of other processes, from the creation of this object on."""

    def __init__(self) -> None:
        self._began = time.monotonic(), self._others()

    def cores(self) -> float:
        """Cores that other processes have used on average."""
        began, others = self._began
        return max(0.0, self._others() - others) / max(time.monotonic() - began, 1e-3)

    def _others(self) -> float:
        times = psutil.cpu_times()
        return float(sum(times) - times.idle - getattr(times, "iowait", 0.0)) - own_cpu()

    def check(self) -> None:
        """Raise ``SystemExit`` if the :meth:`cores` are too many for figures to keep."""
        cores = self.cores()
        if cores > IDLE_CORES:
            raise SystemExit(
                f"other processes used {cores:.2f} cores during the measurement; expected at most "
                f"{IDLE_CORES:g}. Nothing is recorded: repeat it on an idle machine"
            )
