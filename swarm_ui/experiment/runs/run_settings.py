"""The settings of a run, and the environment that they name."""

from __future__ import annotations

import shlex
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from swarm_ui.experiment.config import Config, EnvironmentSection, plain
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.environments.spec import OpenEnvironment
from swarm_ui.experiment.permissions import demands
from swarm_ui.storage.run_directory import RunDirectory


@dataclass(frozen=True, slots=True)
class Run:
    """The settings of ``run``, ``eval`` or ``train``."""

    config: Config
    command: str
    splits: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    directory: RunDirectory | None = None
    """The directory of the run; ``None``: the run has not begun."""

    @property
    def folder(self) -> RunDirectory:
        """The directory of a run that has begun."""
        assert self.directory is not None
        return self.directory

    @property
    def resume_words(self) -> list[str]:
        """The words of the command that continues the run."""
        trust = ["--trust"] if any(demands(self.config)) else []
        return ["swarm-ui", self.command, "--resume", str(self.folder.path), *trust]

    @property
    def resume_command(self) -> str:
        """The command that continues the run, quoted for a shell."""
        return shlex.join(self.resume_words)

    def section(self, split: str, seed: int) -> EnvironmentSection:
        """The environment's settings for one split and seed."""
        return replace(self.config.environment, split=split, seed=seed)


def first_split(environment: EnvironmentSection) -> str:
    """The split that is played if none is named; empty: the environment has none."""
    spec = spec_of(environment.name)
    if environment.tasks and spec.split_of is not None:
        return spec.split_of(environment.tasks)
    return next(iter(spec.splits), "")


def open_environment(section: EnvironmentSection) -> AbstractAsyncContextManager[OpenEnvironment]:
    """Open the environment of a configuration, for ``async with``."""
    return spec_of(section.name).opened(section)


def logged_settings(run: Run) -> dict[str, Any]:
    """The settings that loggers receive: what has no effect on the run is left out."""
    used = ("environment", "model", "team", "critic") if run.command == "train" else (
        "environment", "model", "team")  # fmt: skip
    values = plain(run.config)
    seeds = {"splits": run.splits, "seeds": run.seeds} if run.splits else {}
    return {"command": run.command, **seeds, **{name: values[name] for name in used}}
