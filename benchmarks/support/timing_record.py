"""Records of timings: the load by other processes meanwhile, and the tables of a page."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

BEGIN, END = "<!-- recorded: begin", "<!-- recorded: end"
IDLE_CORES = 0.15
"""Most cores that other processes may use, on average, while figures are measured that are kept."""


class OtherLoad:
    """The CPU time of other processes, from the creation of this object on (Linux)."""

    def __init__(self, own: Callable[[], float] = time.process_time) -> None:
        """``own``: CPU seconds so far of the processes that are measured."""
        self._own = own
        self._began = time.monotonic(), busy_seconds() - own()

    def cores(self) -> float:
        """Cores that other processes have used on average."""
        began, others = self._began
        seconds = max(time.monotonic() - began, 1e-3)
        return max(0.0, busy_seconds() - self._own() - others) / seconds

    def check(self) -> float:
        """The :meth:`cores`. Raises ``SystemExit`` if they are too many for figures to keep."""
        cores = self.cores()
        if cores > IDLE_CORES:
            raise SystemExit(
                f"other processes used {cores:.2f} cores during the measurement; expected at most "
                f"{IDLE_CORES:g}. Nothing is recorded: repeat it on an idle machine"
            )
        return cores


def busy_seconds() -> float:
    """CPU seconds that all processes of this machine have used since it was started (Linux)."""
    first = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = (int(field) for field in first[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def children_seconds() -> float:
    """CPU seconds of the child processes of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def with_recorded(page: str, text: str) -> str:
    """The page of the documentation with ``text`` between its marks."""
    before, begin, rest = page.partition(BEGIN)
    mark, arrow, _ = rest.partition("-->")
    _, end, after = rest.partition(END)
    if not (begin and arrow and end):
        raise ValueError(f"expected a page with the marks {BEGIN} --> and {END} -->")
    inside = f"\n\n{text}\n\n" if text else "\n\n"
    return f"{before}{begin}{mark}{arrow}{inside}{end}{after}"
