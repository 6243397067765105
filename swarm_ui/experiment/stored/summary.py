"""Summaries of runs for a list, read without changing anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, SwarmError
from swarm_ui.experiment.demo.arm_settings import is_demo_run
from swarm_ui.experiment.stored.run_status import RunState, state_of
from swarm_ui.report.results import ArmResult, Results, success_interval
from swarm_ui.stats import Interval, wilson_of
from swarm_ui.storage.run_directory import RunDirectory

_DEPTH = 3
"""Maximum depth of folders that are searched for runs."""
_MOST_EPISODES = 10**6
"""Maximum plausible number of episodes in an iteration; a larger number means a damaged file."""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a list."""

    name: str
    path: str
    state: RunState
    command: str = ""
    """``eval``, ``train`` or ``demo``; empty: made from Python."""
    environment: str = ""
    model: str = ""
    created: datetime | None = None
    success: Interval | None = None
    """Success shown in lists: over all tested episodes, the last arm of a demo, or the last
    rollouts."""
    of: str = ""
    """The set of episodes that ``success`` refers to."""
    files: int = 0
    bytes: int = 0
    problem: str = ""
    """The error that ended the run, or what cannot be read."""

    @property
    def begun(self) -> str:
        """The time in ``created`` for tables, in the local time zone."""
        return "–" if self.created is None else f"{self.created.astimezone():%Y-%m-%d %H:%M}"

    def mentions(self, text: str) -> bool:
        """Whether a text occurs in the path, command, environment, model, policy or problem; case
        does not matter."""
        words = (self.path, self.command, self.environment, self.model, self.of, self.problem)
        return text.casefold() in "\n".join(words).casefold()


def runs_in(folder: Path) -> list[RunSummary]:
    """The runs in a folder and its sub-folders, the newest first; the folder may itself be a run.

    Raises:
        ConfigError: there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder '{folder}'; expected one that holds runs")
    found = [summary_of(path) for path in run_folders(folder)]
    oldest = datetime.min.replace(tzinfo=UTC)
    return sorted(found, key=lambda run: (run.created or oldest, run.path), reverse=True)


def run_folders(folder: Path, depth: int = _DEPTH) -> Iterator[Path]:
    """The folders of runs, including damaged ones. Links and folders inside runs are skipped."""
    if looks_like_a_run(folder):
        yield folder
        return
    if depth == 0:
        return
    with suppress(OSError), os.scandir(folder) as entries:  # a folder of others is left out
        inside = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
        for name in inside:
            yield from run_folders(folder / name, depth - 1)


def looks_like_a_run(folder: Path) -> bool:
    """Whether this is a run, or was one: other folders also have a ``config.json``."""
    path = folder / "config.json"
    try:
        document = msgspec.json.decode(path.read_bytes())
    except OSError:
        found = {name for name in ("results.json", "metrics.jsonl", "status.json")
                 if (folder / name).is_file()}  # fmt: skip
        return bool(found) and (folder / "traces").is_dir()
    except UNREADABLE:
        return (folder / "traces").is_dir()
    return isinstance(document, dict) and "run_version" in document


def summary_of(path: Path) -> RunSummary:
    """The summary of a run's folder. A damaged run has a summary too; this raises no error."""
    run = RunDirectory(path)
    state, problem = state_of(run)
    document: dict[str, Any] = {}
    config: dict[str, Any] = {}
    headline: tuple[Interval | None, str] = None, ""
    try:
        document = run.document()
        config = run.config()
        headline = _headline(run)
    except SwarmError as error:
        if state != "running":  # a file that is being written is not judged
            state, problem = "damaged", problem or str(error)
    command = _command(run, config)
    if state == "killed" and not command:
        state = "unknown"
    files, size = _size(path)
    return RunSummary(
        name=path.resolve().name,
        path=str(path),
        state=state,
        command=command,
        environment=environment_name(config),
        model=_named(config, "model"),
        created=_time(document.get("created")),
        success=headline[0],
        of=headline[1],
        files=files,
        bytes=size,
        problem=" ".join(problem.split()),
    )


def _command(run: RunDirectory, config: Mapping[str, Any]) -> str:
    if config.get("made_by") == "swarm-ui":
        return str(config.get("command") or "")
    try:
        return "demo" if is_demo_run(run) else ""
    except ConfigError:
        return ""


def environment_name(config: Mapping[str, Any]) -> str:
    """The environment in the settings of a run."""
    return _named(config, "environment") or str(config.get("env") or "")


def _named(config: Mapping[str, Any], section: str) -> str:
    """The ``name`` of a section; the demo's settings have plain values instead."""
    value = config.get(section)
    if isinstance(value, dict):
        return str(value.get("name") or "")
    return value if isinstance(value, str) else ""


def _time(value: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _headline(run: RunDirectory) -> tuple[Interval | None, str]:
    """The success shown for a run, and the episodes that it refers to."""
    arms = Results.load(run.path).arms
    if not arms:
        return _last_rollouts(run)
    main = main_arm(arms)
    own = [arm for arm in arms if arm.arm == main]
    jobs = [job for arm in own for job in arm.jobs]
    values = [value for arm in own for value in arm.outcomes]
    return success_interval(jobs, values), main or "all episodes"


def main_arm(arms: Sequence[ArmResult]) -> str:
    """The short name of the main policy of a run, which is the last one."""
    return arms[-1].arm


def _last_rollouts(run: RunDirectory) -> tuple[Interval | None, str]:
    lines = [line for line in run.metrics() if line.get("kind", "iteration") == "iteration"]
    if not lines:
        return None, ""
    line = lines[-1]
    success, iteration = line.get("success"), line.get("iteration")
    if not isinstance(success, float | int) or not isinstance(iteration, int):
        return None, ""
    counted = _whole(line.get("episodes")) - _whole(line.get("masked"))
    if not (0 <= success <= 1 and 0 < counted <= _MOST_EPISODES):
        return None, ""
    return wilson_of(round(success * counted), counted), f"rollouts of iteration {iteration + 1}"


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _size(path: Path) -> tuple[int, int]:
    """The number of files in a folder, and their bytes."""
    files = size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):  # deleted meanwhile
                size += os.lstat(os.path.join(folder, name)).st_size
                files += 1
    return files, size
