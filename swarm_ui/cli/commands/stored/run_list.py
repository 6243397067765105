"""``swarm-ui runs``: lists and deletes runs."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text
from typer.core import TyperGroup

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.environments import ENVIRONMENTS
from swarm_ui.experiment.stored.deletion import delete, to_delete
from swarm_ui.experiment.stored.run_status import STATES, RunState
from swarm_ui.experiment.stored.summary import RunSummary, Wanted, point_in_time, runs_in

_DEFAULT = Path("runs")
_COMMANDS = ("run", "eval", "train", "demo")
STATE_STYLES = {"running": "cyan", "finished": "green", "killed": "yellow", "interrupted": "yellow"}


class _ListByDefault(TyperGroup):
    """``runs FOLDER`` is ``runs list FOLDER``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


runs = typer.Typer(
    cls=_ListByDefault,
    help="Runs on disk: list, delete. [bold]swarm-ui runs FOLDER[/] lists those of a folder.",
)


@runs.command("list")
def list_runs(
    folder: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="a folder of runs, "
                      "searched with its sub-folders; default: runs")] = None,
    command: Annotated[str, typer.Option(metavar="NAME", help="only runs of this command: run, "
                       "eval, train or demo (default: all)",
                       autocompletion=flags.one_of(*_COMMANDS))] = "",
    environment: Annotated[str, typer.Option("--environment", "--env", metavar="ENV", help="only "
                           "runs in this environment (default: all)",
                           autocompletion=flags.one_of(*ENVIRONMENTS))] = "",
    state: Annotated[list[str] | None, typer.Option(metavar="STATE", help="only runs in this "
                     f"state: {', '.join(STATES)}; repeatable (default: all)",
                     autocompletion=flags.one_of(*STATES))] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help="only runs begun since a date "
                     "(2025-01-31) or within an age: 12h, 7d, 2w (default: all)")] = "",
    text: Annotated[str, typer.Option(metavar="TEXT", help="only runs with this text in the path, "
                    "command, environment, model, or policy of the shown success "
                    "(default: all)")] = "",
    json: flags.Json = False,
) -> int:  # fmt: skip
    """List runs, the newest first: command, environment, time, state, success and size.

    This changes nothing. The success rate is that of all tested episodes; for a demo, that of its
    last policy; for a training without a test, that of the last rollouts.
    Example: [bold]swarm-ui runs --state killed --since 7d[/]
    """
    output, now = Output(machine=json), datetime.now(UTC)
    if unknown := [name for name in state or () if name not in STATES]:
        raise ConfigError(f"--state {unknown[0]}: expected one of {', '.join(STATES)}")
    states: tuple[RunState, ...] = tuple(name for name in STATES if name in (state or ()))
    wanted = Wanted(
        command=command,
        environment=environment,
        states=states,
        since=point_in_time(since, now) if since else None,
        text=text,
    )
    place = folder or _DEFAULT
    found = runs_in(place, wanted) if folder is not None or place.is_dir() else []
    if found:
        output.show(_table(found, str(place)))
    else:
        output.say(f"no run in '{place}'" + (" that fits" if wanted != Wanted() else ""))
    for run in found:
        if run.problem:
            output.say(f"{run.path}: {run.state}: {run.problem}")
    return output.done(folder=str(place), runs=[msgspec.to_builtins(run) for run in found])


@runs.command("delete")
def delete_runs(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help="folders of runs")],
    yes: Annotated[bool, flags.declare("--yes", "-y", help="delete without asking",
                                       panel="")] = False,
    dry_run: Annotated[bool, flags.declare("--dry-run", help="show what would be deleted, and stop",
                                           panel="")] = False,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Delete the folders of runs, with everything in them, after asking.

    All folders are checked first. If one of them is not a run, is damaged, holds another run or is
    being written, nothing is deleted.
    Example: [bold]swarm-ui runs delete runs/old --yes[/]
    """
    output = Output(machine=json)
    found = to_delete(paths)
    files, size = sum(run.files for run in found), sum(run.bytes for run in found)
    what = f"{len(found)} run{'s' * (len(found) > 1)}, {files} files, {_shown_size(size)}"
    rows = [run.path for run in found]
    if dry_run:
        output.show(_table(found, f"would be deleted: {what}"))
        return output.done(dry_run=True, runs=rows, files=files, bytes=size)
    if not yes:
        if json or not sys.stdin.isatty():
            raise ConfigError(f"{what} would be deleted: to confirm without a terminal, give --yes")
        output.show(_table(found, "to delete"))
        if not typer.confirm(f"Delete {what}? This cannot be undone.", err=True):
            output.say("nothing was deleted")
            return output.done(runs=[], files=0, bytes=0)
    for path in paths:
        delete(path)
        output.say(f"deleted {path}")
    return output.done(runs=rows, files=files, bytes=size)


def _table(found: list[RunSummary], title: str) -> Any:
    made = table(
        title,
        ["run", "command", "environment", "begun", "state", "success % [95 %]", "of", "size"],
        left=True,
        caption=_caption(found),
    )
    for run in found:
        made.add_row(
            run.path,
            run.command or "–",
            run.environment or "–",
            run.begun,
            Text(run.state, style=STATE_STYLES.get(run.state, "red")),
            "–" if run.success is None else run.success.percent(),
            run.of or "–",
            _shown_size(run.bytes),
        )
    return made


def _caption(found: list[RunSummary]) -> str:
    """The caption of the list, which explains the success rates; empty if there are none."""
    notes = []
    if any(run.success for run in found):
        notes.append("95 % intervals: bootstrap over tasks and their episodes.")
    if any(run.of.startswith("rollouts") for run in found):
        notes.append("Rollouts are sampled and may be guided: not comparable with a test; Wilson.")
    if any(run.state in ("interrupted", "killed", "failed") for run in found):
        notes.append("--resume RUN continues an unfinished run.")
    return " ".join(notes)


def _shown_size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
