"""The state of a run at one moment, from the files in its folder alone; nothing is changed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from swarm_ui.errors import ConfigError, FailureKind, SwarmError, brief
from swarm_ui.experiment.demo.arm_settings import is_of_a_demo
from swarm_ui.experiment.evaluation import trace_name
from swarm_ui.experiment.progress import TaskProgress, Written, duration_text, read_progress
from swarm_ui.experiment.stored.run_status import RunState, state_of
from swarm_ui.experiment.stored.summary import environment_name, looks_like_a_run
from swarm_ui.report.results import ArmResult, Results, success_interval
from swarm_ui.report.totals import set_name
from swarm_ui.rollout import Job
from swarm_ui.stats import Interval
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl

_TRAINING = "train"
"""Name of the set of training episodes, and of a split of some environments. Of its training a run
keeps only a selection, which has no success rate."""
_ALIVE = 60.0
"""Seconds without any written file after which a run without a lock no longer counts as running on
another machine."""
_LEAST_SHARE = 0.1
"""Share of a set's episodes that must have ended before its success is shown: short ones, often
solved, end first."""


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
    """The information that ``swarm-ui runs RUN`` shows."""

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
        raise ConfigError(f"'{path}' is not a run: expected a folder with the config.json of a run")
    at = time.time() if now is None else now
    run, problems = RunDirectory(path), list[str]()
    state, ending = state_of(run)
    config: Mapping[str, object] = {}
    with suppress(ConfigError):  # told as the state of the run
        config = run.config()
    command = str(config.get("command") or config.get("script") or "")
    command = command or ("demo" if is_of_a_demo(config) else "")
    state = state if state != "killed" or command else "unknown"
    progress, silent = read_progress(path), _silent(path, at)
    unlocked = state in ("killed", "unknown") and silent is not None and silent < _ALIVE
    running = state == "running" or unlocked
    recorded = _recorded(path, problems)
    sets = tuple(_sets(path, recorded, command, progress, problems))
    totals = [each.total for each in sets]
    return RunSnapshot(
        run=str(path),
        state=state,
        elsewhere=unlocked and progress is not None,
        command=command,
        environment=environment_name(config),
        problem=" ".join("; ".join(filter(None, [ending, *problems])).split()),
        silent=silent,
        done=sum(each.done for each in sets),
        total=None if None in totals else sum(total or 0 for total in totals),
        left=_left(progress, at) if running else None,
        sets=sets,
        tasks=progress.tasks if running and progress is not None else (),
        faults=dict(Counter(kind for found in recorded.values() for kind in found.faults)),
    )


@dataclass(slots=True)
class _Recorded:
    """The recorded episodes of a set."""

    jobs: list[Job] = field(default_factory=list)
    outcomes: list[bool | None] = field(default_factory=list)
    faults: list[FailureKind] = field(default_factory=list)


def _recorded(path: Path, problems: list[str]) -> dict[str, _Recorded]:
    """The episodes in the trace files by set, as far as they can be read."""
    found: dict[str, _Recorded] = {}
    for file in sorted((path / "traces").glob("*.jsonl")):
        try:
            for episode in iter_jsonl(file, whole=False):  # a line may be just being written
                into = found.setdefault(set_name(file.stem), _Recorded())
                into.jobs.append((episode.task, episode.seed))
                into.outcomes.append(episode.success)
                into.faults += [episode.fault.kind] if episode.fault is not None else []
        except (SwarmError, OSError) as error:
            problems.append(brief(error))
    return found


def _sets(
    path: Path,
    recorded: Mapping[str, _Recorded],
    command: str,
    progress: Written | None,
    problems: list[str],
) -> Iterable[SetStatus]:
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
    begun, evaluates = _begun(progress), command == "eval"
    for name in dict.fromkeys([*recorded, *_planned(path)]):
        if name in arms or any(set_name(arm) == name for arm in arms):
            continue
        found = recorded.get(name, _Recorded())
        done = len(found.outcomes)
        selected = name == _TRAINING and not evaluates
        total = None if selected else begun.get(name)
        few = evaluates if total is None else done < _LEAST_SHARE * total
        numbers = [None if value is None else float(value) for value in found.outcomes]
        yield SetStatus(
            name=name,
            done=done,
            total=done if selected else None if total is None else max(total, done),
            solved=found.outcomes.count(True),
            masked=found.outcomes.count(None),
            success=None if selected or few else success_interval(found.jobs, numbers),
        )


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
        if config.get("made_by") == "swarm-ui" and config.get("command") == "eval":
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


def summary(found: RunSnapshot) -> str:
    """A sentence: episodes, time left, and the last event."""
    total = "" if found.total is None else f" of {found.total:,}"
    said = [f"{found.done:,}{total} episodes"]
    if found.left is not None:
        said.append(f"about {duration_text(found.left)} left")
    if found.silent is not None:
        said.append(f"last event {duration_text(found.silent)} ago")
    return ", ".join(said)
