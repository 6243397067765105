"""The cells of a study: ``swarm-ui`` commands, each in a process of its own, with a record."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.studies.struct_files import read_struct
from benchmarks.support.origin import commit, dirty
from benchmarks.support.timing_record import children_seconds
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic

DECISIONS_PER_EPISODE = 7
"""For estimates: mean decisions of an episode."""
DECISIONS_PER_SECOND = {"json": 0.5, "compact": 4.0}
"""For estimates: decisions of SmolLM2 on two cores, by prompt format."""
SAMPLES_PER_SECOND = 3.5
"""For estimates: training of SmolLM2 on two cores."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One ``swarm-ui`` command, which can also be typed by hand."""

    name: str
    """Name of the cell, and of the folder that it writes."""
    words: tuple[str, ...]
    """What follows ``swarm-ui``, without the output."""
    needs: tuple[str, ...] = ()
    """Cells that must be done before."""
    row: str = ""
    """The row of the table that an evaluation belongs to; empty: not an evaluation."""
    seed: int = 0
    """Seed of the training; 0: nothing was trained."""
    calls: int = 0
    """Estimated calls of the model."""
    hours: float = 0.0
    """Estimated time on two cores."""
    resume: bool = False
    """Whether ``--resume`` continues an interrupted run. If false, the same command continues
    it."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a finished cell."""

    name: str
    command: str
    commit: str
    dirty: bool
    """Whether tracked files differed from the commit."""
    cpu_s: float
    """CPU time of all sessions that worked on it, user and system."""
    seconds: float
    threads: str


def record_of(out: Path, cell: Cell) -> Record | None:
    """The record of a cell, or ``None`` if the cell is not finished."""
    path = out / "records" / f"{cell.name}.json"
    return read_struct(path, Record) if path.exists() else None


def perform(out: Path, cell: Cell) -> Record:
    """Run a cell, or continue it.

    Raises:
        ConfigError: the command failed; the end of its output is in the message.
    """
    folder, log = out / cell.name, out / "logs" / f"{cell.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "swarm_ui", *_words(cell, folder)]
    used, begun = children_seconds(), time.monotonic()
    spent = out / "records" / f"{cell.name}.spent"
    try:
        with log.open("ab") as file:
            code = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
    finally:  # also of a session that is interrupted
        before = _read_spent(spent)
        now = (before[0] + children_seconds() - used, before[1] + time.monotonic() - begun)
        write_atomic(spent, f"{now[0]:.1f} {now[1]:.1f}\n")
    if code:
        tail = log.read_text(encoding="utf-8", errors="replace")[-600:]
        raise ConfigError(f"cell '{cell.name}' ended with {code}; its output is in '{log}': {tail}")
    cpu, seconds = _read_spent(spent)
    record = Record(
        name=cell.name,
        command=shlex.join(["swarm-ui", *cell.words]),
        commit=commit(),
        dirty=dirty(),
        cpu_s=cpu,
        seconds=seconds,
        threads=os.environ.get("OMP_NUM_THREADS", "default"),
    )
    place = out / "records" / f"{cell.name}.json"
    write_atomic(place, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    return record


def _words(cell: Cell, folder: Path) -> list[str]:
    """The command with its output, or the one that goes on with it."""
    kind = cell.words[0]
    if cell.resume and (folder / "config.json").exists():
        return [kind, "--resume", str(folder), "--quiet"]
    if kind == "finetune":  # it names its folder itself
        return [*cell.words, "--quiet"]
    if kind == "adapters":
        return [*cell.words, str(folder)]
    return [*cell.words, "--out", str(folder), "--quiet"]


def _read_spent(path: Path) -> tuple[float, float]:
    if not path.exists():
        return 0.0, 0.0
    cpu, seconds = path.read_text(encoding="utf-8").split()
    return float(cpu), float(seconds)
