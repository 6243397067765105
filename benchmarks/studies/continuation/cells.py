"""The measurements after one stage of the continuation, stored in the folder of the stage."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.studies.struct_files import read_struct
from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.rollout import Job

CELL_VERSION = 1
PHONE_SPLITS = ("new_parameters", "new_apps")
TRACE_SPLITS = {"traces_tasks": "test_task", "traces_sites": "test_website"}
"""Made-up recorded tasks: other tasks of the sites trained on; other sites."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one greedy agent of the team on one split."""

    split: str
    jobs: tuple[Job, ...]
    success: tuple[float | None, ...]
    """One value for each episode; ``None``: masked by a fault."""
    step_success: tuple[float | None, ...] = ()
    """Recorded tasks only: the share of a task's steps that were right."""
    element: tuple[float | None, ...] = ()
    """Recorded tasks only: the share of a task's steps with the right element."""


class Record(msgspec.Struct, kw_only=True):
    """The contents of a cell's file."""

    version: int = CELL_VERSION
    stage: str
    seed: int
    phone_seed: int | None = None
    """Seed of the phone team from which the training starts; ``None``: the seed of the cell."""
    training_cpu_s: float | None = None
    """CPU-seconds of this stage's training in this process; ``None``: not finished."""
    browser_cpu_s: float = 0.0
    played: list[Played] = []


class Cell:
    """The results of one stage with one training seed."""

    def __init__(self, folder: Path, record: Record) -> None:
        self.folder, self.record = folder, record

    @classmethod
    def load(cls, folder: Path) -> Cell:
        """The cell in a folder, or an empty cell with the name of the folder.

        Raises:
            ConfigError: its file cannot be read.
        """
        stage, _, seed = folder.name.rpartition("-")
        path = folder / "measured.json"
        if not path.exists():
            return cls(folder, Record(stage=stage or seed, seed=int(seed) if stage else 0))
        record = read_struct(path, Record)
        if record.version != CELL_VERSION:
            raise ConfigError(f"'{path}' has version {record.version}, expected {CELL_VERSION}")
        return cls(folder, record)

    @property
    def seed(self) -> int:
        return self.record.seed

    @property
    def begun(self) -> int:
        """Seed of the phone team that it starts from."""
        return self.seed if self.record.phone_seed is None else self.record.phone_seed

    @property
    def done(self) -> bool:
        """Whether the cell was trained."""
        return self.record.training_cpu_s is not None

    @property
    def cpu(self) -> float:
        """CPU-seconds of training, including the browser's."""
        return (self.record.training_cpu_s or 0.0) + self.record.browser_cpu_s

    @property
    def adapters(self) -> Path:
        return self.folder / "adapters"

    def finish(self, cpu_seconds: float, browser_seconds: float) -> None:
        """Record that the training has finished."""
        self.record.training_cpu_s, self.record.browser_cpu_s = cpu_seconds, browser_seconds
        self.save()

    def keep(self, played: Played) -> None:
        self.record.played.append(played)
        self.save()

    def has(self, split: str) -> bool:
        return any(p.split == split for p in self.record.played)

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        raw = msgspec.json.format(msgspec.json.encode(self.record), indent=1)
        write_atomic(self.folder / "measured.json", raw + b"\n")
