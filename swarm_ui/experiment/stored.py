"""Runs on disk: whether a process works on them, how they ended, how far they are."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from swarm_ui.budget import Budget
from swarm_ui.errors import UNREADABLE, BudgetExceeded, ConfigError, SwarmError, brief
from swarm_ui.experiment.progress import TaskProgress, Written, duration_text, read_progress
from swarm_ui.files import being_written, only_writer, write_atomic
from swarm_ui.message import Usage
from swarm_ui.report.read import Contents, Training, read, set_name
from swarm_ui.report.results import ArmResult, Cost, Results
from swarm_ui.stats import Interval
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.jsonl import iter_jsonl

RunState = Literal["running", "finished", "failed", "interrupted", "killed", "damaged", "unknown"]
"""``failed``: an error ended it. ``interrupted``: by Ctrl-C, or a budget was used up. ``killed``:
no end was recorded. ``damaged``: its files cannot be read. ``unknown``: made from Python, which
need not record an end."""
STATES: tuple[RunState, ...] = get_args(RunState)
DISK_ERRORS = frozenset({errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC,
                         errno.EPERM, errno.EROFS})  # fmt: skip
"""Numbers of the errors of a full, read-only or broken disk."""
_DEPTH = 3
"""Maximum depth of folders that are searched for runs."""
_TRAINING = "train"
"""Name of the set of training episodes, and of a split of some environments. Of its training a run
keeps only a selection, which has no success rate."""
_LEAST_SHARE = 0.1
"""Share of a set's episodes that must have ended before its success is shown: short ones, often
solved, end first."""


def trace_name(split: str, seed: int, seeds: Sequence[int]) -> str:
    """Name of the trace file of the episodes of a split, in a run with these seeds."""
    return (split.replace("/", "-") or "episodes") + (f"-seed{seed}" if len(seeds) > 1 else "")


@contextmanager
def running(run: RunDirectory) -> Iterator[None]:
    """Lock a run while the block works on it, and record how the block ended if it failed; nothing
    in a folder that is otherwise unused. Raises ``ConfigError`` if another process works on it, or
    the block could not write its files."""
    with only_writer(run.path, "run"):
        if (run.path / "status.json").exists():
            run.set_status({"stage": "resumed"})  # how it ended before is over
        try:
            yield
        except (KeyboardInterrupt, Exception) as error:
            stopped = isinstance(error, KeyboardInterrupt | BudgetExceeded)
            if begun := stopped or not run.unused:
                stage = {"stage": "interrupted" if stopped else "failed"}
                with suppress(OSError):  # a full disk may be why it failed: that error is raised
                    run.set_status({**stage, "error": " ".join(brief(error).split())})
            if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                raise ConfigError(
                    f"the run '{run.path}' cannot be written: {error}; make room, or change its "
                    f"permissions, and {'continue the run' if begun else 'repeat the command'}"
                ) from error
            raise


def state_of(run: RunDirectory) -> tuple[RunState, str]:
    """The state of a run, and the error that ended it or a description of damage. Changes nothing,
    and does not check files that are being written."""
    if being_written(run.path):
        return "running", ""
    try:
        made, status = run.document().get("config"), run.status()
    except ConfigError as error:
        return "damaged", str(error)
    ended = {"played": "finished", "trained": "finished", "done": "finished", "failed": "failed",
             "interrupted": "interrupted"}  # fmt: skip
    by_command = isinstance(made, dict) and made.get("command")
    state = ended.get(str(status.get("stage")), "killed" if by_command else "unknown")
    return state, "" if state == "finished" else str(status.get("error") or "")  # type: ignore[return-value]


class Spent(msgspec.Struct, frozen=True):
    """Calls and tokens of all processes that worked on the run."""

    calls: int = 0
    tokens: int = 0


@contextmanager
def spending(model: object, run: RunDirectory, *, role: str = "") -> Iterator[None]:
    """Count in the model's budget what the run has spent before, and write what it spends.

    A process that was killed has not written it; then the calls of the agents in the traces and in
    the measurements of a training count. ``role``: of a model beside that of the agents, such as
    ``"critic"``; it has a file of its own, and no traces."""
    budget = getattr(model, "budget", None)
    if not isinstance(budget, Budget) or not budget.limited:
        yield
        return
    path = run.path / (f"spent-{role}.json" if role else "spent.json")
    spent = msgspec.json.decode(path.read_bytes(), type=Spent) if path.exists() else Spent()
    calls, tokens = spent.calls, spent.tokens
    if not role:
        episodes = (e for file in run.traces.glob("*.jsonl") for e in iter_jsonl(file, whole=False))
        lines = [line for line in run.metrics() if line.get("kind") == "rollouts"]
        counted = [msgspec.convert({**line, "seconds": 0.0}, Cost) for line in lines]
        for cost in (Cost.of_episodes(episodes), Cost.total(counted)):
            calls, tokens = max(calls, cost.calls), max(tokens, cost.tokens)
    budget.count(Usage(prompt_tokens=tokens), calls)
    try:
        yield
    finally:
        write_atomic(path, msgspec.json.encode(Spent(budget.calls, budget.tokens)))


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
    """The runs in a folder and its sub-folders, the newest first; the folder may be a run."""
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
        if arms := Results.load(path).arms:
            success, of = ArmResult.total(arms, "").success, "all episodes"
        elif (last := Training.of(run.metrics(), []).last) is not None:
            success, of = last[1], f"rollouts of iteration {last[0] + 1}"
    except SwarmError as error:
        if state != "running":  # a file that is being written is not judged
            state, problem = "damaged", problem or str(error)
    config = document.get("config")
    config = config if isinstance(config, dict) else {}
    env, model = (
        str((value.get("name") if isinstance(value, dict) else value) or "")
        for value in (config.get("env"), config.get("model"))
    )
    created: datetime | None = None
    with suppress(ValueError):
        created = datetime.fromisoformat(str(document.get("created")))
        created = created if created.tzinfo is not None else created.replace(tzinfo=UTC)
    return RunSummary(
        path=str(path), state=state, command=str(config.get("command") or ""), environment=env,
        model=model, created=created, success=success, of=of, problem=" ".join(problem.split()),
    )  # fmt: skip


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
    """The state of a run at ``now`` (seconds since the epoch), from its files alone."""
    if not looks_like_a_run(path):
        raise ConfigError(f"'{path}' is not a run: expected a folder with the config.json of a run")
    at = time.time() if now is None else now
    run, progress, contents = _summarised(path), read_progress(path), read(path)
    playing = progress if run.state == "running" else None
    sets = tuple(_sets(contents, run.command == "eval", _planned(path), progress))
    totals = [each.total for each in sets]
    files = [*path.glob("*.json*"), *(path / "traces").glob("*.jsonl")]
    files = [file for file in files if file.name != "config.json"]
    written = [file.stat().st_mtime for file in files]
    known = [task.left for task in (playing.tasks if playing else ()) if task.left is not None]
    damage = () if run.state == "running" else contents.damage
    told = dict.fromkeys(filter(None, [run.problem, *damage]))
    return RunSnapshot(
        **{**msgspec.structs.asdict(run), "problem": "; ".join(told)},
        silent=max(0.0, at - max(written)) if written else None,
        done=sum(each.done for each in sets),
        total=None if None in totals else sum(total or 0 for total in totals),
        left=max(0.0, max(known) - (at - playing.written)) if playing and known else None,
        sets=sets,
        tasks=playing.tasks if playing else (),
    )


def _sets(
    contents: Contents, evaluates: bool, planned: Sequence[str], progress: Written | None
) -> Iterator[SetStatus]:
    """The sets in order: with results, without results, not started."""
    tested = {arm.file: arm for arm in contents.results.arms if contents.tested}
    done_with = {set_name(name) for name in tested}
    kept = {arm.name: arm for arm in contents.kept if arm.name not in done_with}
    tasks = () if progress is None else (*progress.ended, *progress.tasks)
    begun = {task.label: round(task.total) for task in tasks}
    for name in dict.fromkeys([*tested, *kept, *planned]):
        arm = (tested | kept).get(name, ArmResult(split=name))
        done, total = len(arm.outcomes), begun.get(name)
        selection = name == _TRAINING and not evaluates
        if name in tested or selection:
            total = done
        elif total is not None:
            total = max(total, done)
        few = evaluates if total is None else done < _LEAST_SHARE * total
        yield SetStatus(
            name=name, done=done, total=total, solved=arm.solved, masked=arm.masked,
            success=None if selection or few else arm.success,
        )  # fmt: skip


def _planned(path: Path) -> list[str]:
    """The sets that an evaluation plays, in their order."""
    with suppress(ConfigError, KeyError, TypeError):
        config = RunDirectory(path).config()
        wanted: Any = config.get("eval")
        if config.get("command") == "eval":
            seeds = wanted["seed"]
            return [trace_name(str(split), s, seeds) for split in wanted["split"] for s in seeds]
    return []
