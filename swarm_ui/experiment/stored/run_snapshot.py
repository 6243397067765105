"""The state of a run at one moment, from the files in its folder alone; nothing is changed."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError, FailureKind
from swarm_ui.experiment.evaluation import trace_name
from swarm_ui.experiment.live.following import Look, RunFollower
from swarm_ui.experiment.live.progress_file import Written
from swarm_ui.experiment.progress import TaskProgress
from swarm_ui.experiment.results import ArmResult, Results, success_interval
from swarm_ui.experiment.stored.run_status import RunState
from swarm_ui.experiment.stored.summary import looks_like_a_run
from swarm_ui.report.totals import set_name
from swarm_ui.stats import Interval
from swarm_ui.storage.run_directory import RunDirectory

_ALIVE = 60.0
"""Seconds without any written file after which a run without a lock no longer counts as running on
another machine."""


_LEAST_SHARE = 0.1
"""Share of a set's episodes that must have ended before its success is shown."""


class SetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The episodes of one trace file, or of one policy on one split."""

    name: str
    done: int
    """Recorded episodes, masked ones included."""
    total: int | None
    """Number of episodes of the set; ``None``: not known yet."""
    solved: int
    masked: int
    success: Interval | None
    """``None`` if no episode counts, if less than a tenth of the set is done, or if the episodes
    are a selection."""


class RunSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The information that ``swarm-ui status`` shows."""

    run: str
    state: RunState
    elsewhere: bool
    """No lock is visible here, but files were written recently: the run may be on another machine,
    with a file system that does not share locks."""
    command: str
    environment: str
    problem: str
    """The error that ended the run, or what cannot be read."""
    silent: float | None
    """Seconds since the last write; ``None``: nothing was written."""
    done: int
    total: int | None
    left: float | None
    """Seconds until the end, as the run itself estimates it; ``None``: not known."""
    sets: tuple[SetStatus, ...]
    tasks: tuple[TaskProgress, ...]
    """The tasks in progress."""
    faults: dict[FailureKind, int]
    """Masked episodes, by the kind of the fault."""


def snapshot(path: Path, now: float | None = None) -> RunSnapshot:
    """The state of a run.

    Args:
        path: its folder.
        now: seconds since the epoch; by default the present time.

    Raises:
        ConfigError: this is not the folder of a run.
    """
    if not path.is_dir():
        raise ConfigError(f"there is no run '{path}': expected the folder of a run")
    if not looks_like_a_run(path):
        raise ConfigError(
            f"'{path}' is not a run: it has no config.json of a run; to list the runs in a folder: "
            f"swarm-ui runs {shlex.quote(str(path))}"
        )
    at = time.time() if now is None else now
    follower = RunFollower(path)
    look = follower.look()
    while follower.behind:  # one look reads a part of a large file
        look = follower.look()
    silent = _silent(path, at)
    state: RunState = look.state if look.state != "killed" or look.command else "unknown"
    unlocked = state in ("killed", "unknown") and silent is not None and silent < _ALIVE
    running = look.state == "running" or unlocked
    problems = list(look.problems)
    sets = tuple(_sets(path, look, problems))
    totals = [each.total for each in sets]
    return RunSnapshot(
        run=str(path),
        state=state,
        elsewhere=unlocked and look.progress is not None,
        command=look.command,
        environment=look.environment,
        problem=" ".join("; ".join(filter(None, [look.error, *problems])).split()),
        silent=silent,
        done=sum(each.done for each in sets),
        total=None if None in totals else sum(total or 0 for total in totals),
        left=_left(look.progress, at) if running else None,
        sets=sets,
        tasks=look.progress.tasks if running and look.progress is not None else (),
        faults=look.fault_kinds,
    )


def _sets(path: Path, look: Look, problems: list[str]) -> Iterable[SetStatus]:
    """The sets in order: with results, without results, not started."""
    arms: dict[str, ArmResult] = {}
    try:
        arms = {arm.name or f"{arm.split}-{arm.arm}": arm for arm in Results.load(path).arms}
    except ConfigError as error:
        problems.append(str(error))
    for name, arm in arms.items():
        yield SetStatus(
            name=name,
            done=len(arm.outcomes),
            total=len(arm.jobs),
            solved=arm.solved,
            masked=arm.masked,
            success=arm.success,
        )
    begun = _begun(look.progress)
    for name in dict.fromkeys([*look.outcomes, *_planned(path)]):
        if name in arms or any(set_name(arm) == name for arm in arms):
            continue
        values = look.outcomes.get(name, ())
        numbers = [None if value is None else float(value) for value in values]
        selected = look.is_selection(name)
        total = None if selected else begun.get(name)
        yield SetStatus(
            name=name,
            done=len(values),
            total=len(values) if selected else None if total is None else max(total, len(values)),
            solved=sum(value is True for value in values),
            masked=sum(value is None for value in values),
            success=None
            if selected or _too_early(look, len(values), total)
            else success_interval(look.jobs.get(name, ()), numbers),
        )


def _too_early(look: Look, done: int, total: int | None) -> bool:
    """Whether too few episodes ended for a success rate: short ones, often solved, end first."""
    return look.evaluates if total is None else done < _LEAST_SHARE * total


def _begun(progress: Written | None) -> dict[str, int]:
    """The number of episodes of each set that was begun, by the name of its trace file, from the
    recorded progress."""
    if progress is None:
        return {}
    return {task.label: round(task.total) for task in (*progress.ended, *progress.tasks)}


def _planned(path: Path) -> list[str]:
    """The sets that an evaluation plays, in their order."""
    with suppress(ConfigError, msgspec.ValidationError):
        config: Mapping[str, object] = RunDirectory(path).config()
        if config.get("made_by") == "swarm-ui" and config.get("command") in ("run", "eval"):
            splits = msgspec.convert(config.get("splits"), list[str])
            seeds = msgspec.convert(config.get("seeds"), list[int])
            return [trace_name(split, seed, seeds) for split in splits for seed in seeds]
    return []


def _silent(path: Path, now: float) -> float | None:
    """Seconds since the last change of a file that a run writes; ``None`` if there is no such
    file."""
    names = ("progress.json", "status.json", "metrics.jsonl", "results.json")
    times = []
    for file in (*(path / name for name in names), *(path / "traces").glob("*.jsonl")):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(0.0, now - max(times)) if times else None


def _left(progress: Written | None, now: float) -> float | None:
    """The remaining time of the task that takes longest, as the terminal shows it."""
    if progress is None:
        return None
    known = [task.left for task in progress.tasks if task.left is not None]
    return max(0.0, max(known) - (now - progress.written)) if known else None
