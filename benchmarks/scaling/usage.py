"""CPU time and memory of this process and of those below it, from ``/proc`` (Linux)."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_by_process() -> dict[int, float]:
    """CPU seconds of the living processes below this one, and of this one."""
    found = {}
    for pid in kinds():
        with contextlib.suppress(OSError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = (int(fields[11]) + int(fields[12])) / _TICK
    return found


def cpu_since(before: Mapping[int, float]) -> dict[str, float]:
    """CPU seconds since an earlier :func:`cpu_by_process`, by kind; without ended processes.

    Kinds: ``driver`` (this process), ``workers`` (Ray's actors and what they started, such as
    browsers), ``browser`` (below the driver), ``ray`` (Ray's own processes).
    """
    now, kind = cpu_by_process(), kinds()
    spent: dict[str, float] = defaultdict(float)
    for pid, seconds in now.items():
        spent[kind.get(pid, "ray")] += seconds - before.get(pid, 0.0)
    return spent


def kinds() -> dict[int, str]:
    """The living processes below this one, and their kinds."""
    below: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            below.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = {os.getpid(): "driver"}
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for pid in below.get(parent, []):
            found[pid] = _kind(pid, found[parent])
            waiting.append(pid)
    return found


def _kind(pid: int, parent: str) -> str:
    if parent in ("workers", "browser"):
        return parent
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        if command.startswith(b"ray::") and not command.startswith(b"ray::IDLE"):
            return "workers"
        if parent == "ray" or b"ray/" in command or b"ray::" in command:
            return "ray"
        return "browser"
    return parent


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")
