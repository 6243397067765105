"""Runs on disk: whether a process works on them, how they ended, how far they are."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from swarm_ui.errors import (
    UNREADABLE,
    BudgetExceeded,
    ConfigError,
    SwarmError,
    brief,
)
from swarm_ui.experiment.evaluation import trace_name
from swarm_ui.experiment.progress import TaskProgress, Written, duration_text, read_progress
from swarm_ui.files import being_written, only_writer
from swarm_ui.report.read import Training, set_name
from swarm_ui.report.results import ArmResult, Results
from swarm_ui.stats import Interval
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl
from swarm_ui.trace.records import Episode

RunState = Literal[
    "running", "finished", "failed", "interrupted", "killed", "damaged", "unknown"
]  # fmt: skip
"""``failed``: an error ended it. ``interrupted``: by Ctrl-C, or a budget was used up. ``killed``:
no end was recorded. ``damaged``: its files cannot be read. ``unknown``: made from Python, which
need not record an end."""
STATES: tuple[RunState, ...] = get_args(RunState)
DISK_ERRORS = frozenset({errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC,
                         errno.EPERM, errno.EROFS})  # fmt: skip
"""Numbers of the errors of a full, read-only or broken disk."""
_FINISHED = ("played", "trained", "done")
"""The stages after which nothing is left to do."""
_DEPTH = 3
"""Maximum depth of folders that are searched for runs."""
_TRAINING = "train"
"""Name of the set of training episodes, and of a split of some environments. Of its training a run
keeps only a selection, which has no success rate."""
_LEAST_SHARE = 0.1
"""Share of a set's episodes that must have ended before its success is shown: short ones, often
solved, end first."""


@contextmanager
def running(run: RunDirectory) -> Iterator[None]:
    """Lock a run while the block works on it, and record how the block ended if it failed.

    Nothing is recorded in a folder that is otherwise unused.

    Raises:
        ConfigError: another process is working on it, or the block could not write its files.
    """
    with only_writer(run.path, "run"):
        if (run.path / "status.json").exists():
            run.set_status({"stage": "resumed"})  # how it ended before is over
        try:
            yield
        except (KeyboardInterrupt, BudgetExceeded) as error:
            _record(run, "interrupted", error)
            raise
        except Exception as error:
            begun = not run.unused
            if begun:
                _record(run, "failed", error)
            if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                raise ConfigError(
                    f"the run '{run.path}' cannot be written: {error}; make room, or change its "
                    f"permissions, and {'continue the run' if begun else 'repeat the command'}"
                ) from error
            raise


def _record(run: RunDirectory, stage: str, error: BaseException) -> None:
    with suppress(OSError):  # a full disk may be why it failed: that error is raised
        run.set_status({"stage": stage, "error": " ".join(brief(error).split())})


def state_of(run: RunDirectory) -> tuple[RunState, str]:
    """The state of a run, and the error that ended it or a description of damage; changes nothing.

    The files of a run that is being written are not checked for damage.
    """
    if being_written(run.path):
        return "running", ""
    try:
        made = run.document().get("config")
        status = run.status()
    except ConfigError as error:
        return "damaged", str(error)
    stage, reason = status.get("stage"), str(status.get("error") or "")
    if stage in _FINISHED:
        return "finished", ""
    if stage in ("failed", "interrupted"):
        return "failed" if stage == "failed" else "interrupted", reason
    return ("killed" if isinstance(made, dict) and made.get("command") else "unknown"), reason


# -- a list of runs ---------------------------------------------------------------------------


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a list."""

    path: str
    state: RunState
    command: str = ""
    """``eval`` or ``train``; empty: made from Python."""
    environment: str = ""
    model: str = ""
    created: datetime | None = None
    success: Interval | None = None
    """Over all tested episodes of the last policy, or of the last rollouts."""
    of: str = ""
    """The episodes that ``success`` refers to."""
    problem: str = ""
    """The error that ended the run, or what cannot be read."""


def runs_in(folder: Path) -> list[RunSummary]:
    """The runs in a folder and its sub-folders, the newest first; the folder may itself be a run.

    Raises:
        ConfigError: there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder '{folder}'; expected one that holds runs")
    found = [_summarised(path) for path in _folders(folder, _DEPTH)]
    oldest = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda run: (run.created or oldest, run.path), reverse=True)


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    """The folders of runs, including damaged ones. Links and folders inside runs are skipped."""
    if looks_like_a_run(folder):
        yield folder
    elif depth:
        with suppress(OSError), os.scandir(folder) as entries:  # a folder of others is left out
            for name in sorted(e.name for e in entries if e.is_dir(follow_symlinks=False)):
                yield from _folders(folder / name, depth - 1)


def looks_like_a_run(folder: Path) -> bool:
    """Whether this is a run, or was one: other folders also have a ``config.json``."""
    try:
        document = msgspec.json.decode((folder / "config.json").read_bytes())
    except OSError:
        names = ("results.json", "metrics.jsonl", "status.json")
        return (folder / "traces").is_dir() and any((folder / n).is_file() for n in names)
    except UNREADABLE:
        return (folder / "traces").is_dir()
    return isinstance(document, dict) and "run_version" in document


def _summarised(path: Path) -> RunSummary:
    run = RunDirectory(path)
    state, problem = state_of(run)
    document: Mapping[str, Any] = {}
    success, of = None, ""
    try:
        document = run.document()
        success, of = _headline(run)
    except SwarmError as error:
        if state != "running":  # a file that is being written is not judged
            state, problem = "damaged", problem or str(error)
    config = document.get("config")
    command, environment, model = _about(config if isinstance(config, dict) else {})
    return RunSummary(
        path=str(path),
        state=state,
        command=command,
        environment=environment,
        model=model,
        created=_time(document.get("created")),
        success=success,
        of=of,
        problem=" ".join(problem.split()),
    )


def _about(config: Mapping[str, Any]) -> tuple[str, str, str]:
    """Command, environment and model in the settings of a run; empty where they are unknown."""

    def name(section: str) -> str:
        value = config.get(section)
        return str((value.get("name") if isinstance(value, dict) else value) or "")

    return str(config.get("command") or ""), name("env"), name("model")


def _time(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _headline(run: RunDirectory) -> tuple[Interval | None, str]:
    """The success shown for a run, and the episodes that it refers to."""
    arms = Results.load(run.path).arms
    if arms:
        return ArmResult.total(arms, "").success, "all episodes"
    found = Training.of(run.metrics(), []).last
    return (None, "") if found is None else (found[1], f"rollouts of iteration {found[0] + 1}")


# -- one run ----------------------------------------------------------------------------------


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


class RunSnapshot(RunSummary, frozen=True, kw_only=True):
    """The information that ``swarm-ui runs RUN`` shows."""

    silent: float | None
    """Seconds since the last write; ``None``: nothing was written."""
    done: int
    total: int | None
    left: float | None
    """Seconds until the end, as the run itself estimates it; ``None``: not known."""
    sets: tuple[SetStatus, ...]
    tasks: tuple[TaskProgress, ...]
    """The tasks in progress."""

    def __str__(self) -> str:
        total = "" if self.total is None else f" of {self.total:,}"
        said = [f"{self.done:,}{total} episodes"]
        if self.left is not None:
            said.append(f"about {duration_text(self.left)} left")
        if self.silent is not None:
            said.append(f"last event {duration_text(self.silent)} ago")
        return ", ".join(said)


def snapshot(path: Path, now: float | None = None) -> RunSnapshot:
    """The state of a run at ``now`` (seconds since the epoch), from the files in its folder alone.

    Raises:
        ConfigError: this is not the folder of a run.
    """
    if not looks_like_a_run(path):
        raise ConfigError(f"'{path}' is not a run: expected a folder with the config.json of a run")
    at, problems = time.time() if now is None else now, list[str]()
    run, config, progress = _summarised(path), dict[str, Any](), read_progress(path)
    with suppress(ConfigError):  # told as the state of the run
        config = RunDirectory(path).config()
    now_playing = progress if run.state == "running" else None
    sets = tuple(_sets(path, _recorded(path, problems), config, progress))
    totals = [each.total for each in sets]
    told = "; ".join(filter(None, [run.problem, *problems]))
    return RunSnapshot(
        **{**msgspec.structs.asdict(run), "problem": " ".join(told.split())},
        silent=_silent(path, at),
        done=sum(each.done for each in sets),
        total=None if None in totals else sum(total or 0 for total in totals),
        left=_left(now_playing, at) if now_playing else None,
        sets=sets,
        tasks=now_playing.tasks if now_playing else (),
    )


def _recorded(path: Path, problems: list[str]) -> dict[str, ArmResult]:
    """The episodes in the trace files by set, as far as they can be read."""
    parts: dict[str, list[ArmResult]] = {}
    for file in sorted((path / "traces").glob("*.jsonl")):

        def readable(file: Path = file) -> Iterator[Episode]:
            try:
                yield from iter_jsonl(file, whole=False)  # a line may be just being written
            except (SwarmError, OSError) as error:
                problems.append(brief(error))

        name = set_name(file.stem)
        parts.setdefault(name, []).append(ArmResult.of_episodes(name, readable()))
    return {name: ArmResult.total(found, name) for name, found in parts.items()}


def _sets(
    path: Path,
    recorded: Mapping[str, ArmResult],
    config: Mapping[str, Any],
    progress: Written | None,
) -> Iterator[SetStatus]:
    """The sets in order: with results, without results, not started."""
    arms: dict[str, ArmResult] = {}
    with suppress(ConfigError):  # told as the state of the run
        arms = {arm.file: arm for arm in Results.load(path).arms}
    for name, arm in arms.items():
        yield _status(name, arm, len(arm.jobs), arm.success)
    tasks = () if progress is None else (*progress.ended, *progress.tasks)
    begun = {task.label: round(task.total) for task in tasks}
    evaluates, tested = config.get("command") == "eval", {set_name(name) for name in arms}
    for name in dict.fromkeys([*recorded, *_planned(config)]):
        if name in tested or name in arms:
            continue
        arm = recorded.get(name, ArmResult(split=name))
        done, total = len(arm.outcomes), begun.get(name)
        if name == _TRAINING and not evaluates:  # a selection
            yield _status(name, arm, done, None)
            continue
        few = evaluates if total is None else done < _LEAST_SHARE * total
        yield _status(name, arm, total and max(total, done), None if few else arm.success)


def _status(name: str, arm: ArmResult, total: int | None, success: Interval | None) -> SetStatus:
    return SetStatus(
        name=name,
        done=len(arm.outcomes),
        total=total,
        solved=arm.solved,
        masked=arm.masked,
        success=success,
    )


def _planned(config: Mapping[str, Any]) -> list[str]:
    """The sets that an evaluation plays, in their order."""
    if config.get("command") == "eval":
        with suppress(msgspec.ValidationError):
            wanted = msgspec.convert(config.get("eval"), dict[str, object])
            splits = msgspec.convert(wanted.get("split"), list[str])
            seeds = msgspec.convert(wanted.get("seed"), list[int])
            return [trace_name(split, seed, seeds) for split in splits for seed in seeds]
    return []


def _silent(path: Path, now: float) -> float | None:
    """Seconds since the last change of a file that a run writes."""
    names = ("progress.json", "status.json", "metrics.jsonl", "results.json")
    times = []
    for file in (*(path / name for name in names), *(path / "traces").glob("*.jsonl")):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(0.0, now - max(times)) if times else None


def _left(progress: Written, now: float) -> float | None:
    """The remaining time of the task that takes longest, as the terminal shows it."""
    known = [task.left for task in progress.tasks if task.left is not None]
    return max(0.0, max(known) - (now - progress.written)) if known else None
