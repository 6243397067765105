"""Runs of a command: begun after a check, stopped with the command that continues, shown."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from swarm_ui.cli.flags import Arguments
from swarm_ui.cli.output import Output, facts_table
from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.experiment import Run
from swarm_ui.experiment.config import Config, FilledTeam
from swarm_ui.experiment.model_settings import Agent, AnyModel, Language
from swarm_ui.experiment.models import describe_model, load_in_process
from swarm_ui.experiment.playing import expect_ready
from swarm_ui.experiment.teams import team_size
from swarm_ui.files import being_written

T = TypeVar("T")


class Stopped(Exception):
    """Work was interrupted, or a budget is used up; the finished part is saved."""

    def __init__(self, run: Path, resume: str, cause: BaseException | None = None) -> None:
        super().__init__(f"saved in {run}; continue with: {resume}")
        self.run, self.resume, self.cause = run, resume, cause


def loaded(model: AnyModel, out: Output, learned: Sequence[str] = ()) -> Any:
    """A model of this process, loaded outside the event loop, so that Ctrl-C works without delay;
    ``None`` for other models. ``learned``: adapters that are to be trained."""
    if not isinstance(model, Agent | Language):
        return None
    with out.busy(f"loading {model.name} …"):
        return load_in_process(model, learned)


def begun(config: Config, out: Path | None, command: str) -> Run:
    """A new run with its folder, after a check of what it needs."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"--out: '{out}' exists and is not empty; choose another, or continue "
                          f"the run with --resume {out}")  # fmt: skip
    asyncio.run(expect_ready(config, learning=command == "train"))
    return Run.create(out, config, command=command)


def repeatable(out: Path, work: Callable[[], T]) -> T:
    """Do the work of a command that is repeated as it was, to continue it. Raises ``Stopped`` if it
    was interrupted, or a budget is used up."""
    try:
        return work()
    except (KeyboardInterrupt, BudgetExceeded) as error:
        raise Stopped(out, "the same command (what is finished is kept)", error) from error


def stoppable(run: Run, again: list[str], work: Callable[[], T], *, new: bool, named: bool) -> T:
    """Do the work of a run that has begun; ``again``: the words of the command that continues it.

    If the work of a ``new`` run fails before anything is written, its directory is deleted;
    ``named``: the user chose it. Raises ``Stopped`` as :func:`repeatable` does."""
    try:
        return work()
    except (KeyboardInterrupt, BudgetExceeded) as error:
        raise Stopped(run.path, shlex.join(again), error) from error
    except Exception:
        ours = new and not being_written(run.path)  # no other process holds the lock
        if ours and run.folder.remove_if_unused() and not named:
            with suppress(OSError):  # other runs are in it
                run.path.parent.rmdir()
        raise


def show_plan(
    arguments: Arguments, run: Run | None, config: Config, team: FilledTeam, **facts: object
) -> int:
    """Show what a command would do; returns the exit code."""
    wraps = f" in {', '.join(config.env.wrap)}" if config.env.wrap else ""
    facts = {
        "environment": config.env.name + wraps,
        "model": describe_model(config.model),
        "team": team_size(team),
        **{name: fact for name, fact in facts.items() if fact != ""},
        "place": f"{config.place.name}:{getattr(config.place, 'address', '')}".rstrip(":"),
        "out": str(run.path if run is not None else arguments["out"] or "runs/<date>-…"),
    }
    arguments.output.show(facts_table("would be done, nothing is written", facts))
    return arguments.output.done(dry_run=True, **facts)
