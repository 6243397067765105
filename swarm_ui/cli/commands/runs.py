"""``swarm-ui runs``: the runs of a folder, or the progress of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import duration_text
from swarm_ui.experiment.stored import (
    STATES,
    RunSnapshot,
    RunSummary,
    looks_like_a_run,
    runs_in,
    snapshot,
)

_DEFAULT = Path("runs")
_STYLES = {"running": "cyan", "finished": "green", "killed": "yellow", "interrupted": "yellow"}


def runs(
    path: Annotated[Path | None, typer.Argument(metavar="FOLDER", help="a folder of runs, searched "
                    "with its sub-folders, or the folder of one run; default: runs")] = None,
    state: Annotated[list[str] | None, typer.Option(metavar="STATE", help="only runs in this "
                     f"state: {', '.join(STATES)}; repeatable (default: all)",
                     autocompletion=flags.one_of(*STATES))] = None,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """List runs, the newest first; or show the progress of one run, while it plays or later.

    This only reads files, so it works while another process or machine writes them. The success
    rate of a list is that of all tested episodes; for a training without a test, that of the last
    rollouts. Example: [bold]swarm-ui runs --state killed[/]
    """
    output = Output(machine=json)
    if path is not None and looks_like_a_run(path):
        found = snapshot(path)
        _show(found, output)
        return output.done(**msgspec.to_builtins(found))
    if unknown := [name for name in state or () if name not in STATES]:
        raise ConfigError(f"--state {unknown[0]}: expected one of {', '.join(STATES)}")
    place = path or _DEFAULT
    listed = runs_in(place) if path is not None or place.is_dir() else []
    listed = [run for run in listed if not state or run.state in state]
    if listed:
        output.show(_table(listed, str(place)))
    else:
        output.say(f"no run in '{place}'" + (" that fits" if state else ""))
    for run in listed:
        if run.problem:
            output.say(f"{run.path}: {run.state}: {run.problem}")
    return output.done(folder=str(place), runs=[msgspec.to_builtins(run) for run in listed])


def _table(found: list[RunSummary], title: str) -> Table:
    notes = []
    if any(run.success for run in found):
        notes.append("95 % intervals: bootstrap over tasks and their episodes.")
    if any(run.of.startswith("rollouts") for run in found):
        notes.append("Rollouts are sampled and may be guided: not comparable with a test; Wilson.")
    if any(run.state in ("interrupted", "killed", "failed") for run in found):
        notes.append("--resume RUN continues an unfinished run.")
    columns = ["run", "command", "environment", "begun", "state", "success % [95 %]", "of"]
    made = table(title, columns, left=True, caption=" ".join(notes))
    for run in found:
        made.add_row(
            run.path,
            run.command or "–",
            run.environment or "–",
            "–" if run.created is None else f"{run.created.astimezone():%Y-%m-%d %H:%M}",
            Text(run.state, style=_STYLES.get(run.state, "red")),
            "–" if run.success is None else run.success.percent(),
            run.of or "–",
        )
    return made


def _show(found: RunSnapshot, out: Output) -> None:
    """Show the progress of one run."""
    state = Text(found.state, style=_STYLES.get(found.state, "red"))
    about = " · ".join(filter(None, [found.command, found.environment]))
    lines = [Text.assemble(f"{found.path}: ", state, f" · {about}" if about else "")]
    lines += [Text(found.problem)] if found.problem else []
    lines.append(Text(str(found)))
    for task in found.tasks:
        share = min(1.0, task.done / task.total) if task.total > 0 else 0.0
        said = [f"{share:.0%}", f"{duration_text(task.seconds)} so far", task.note]
        lines.append(Text(f"{task.label}: {', '.join(filter(None, said))}"))
    for line in lines:
        line.overflow = "fold"
        out.show(line)
    if found.sets:
        out.show(_sets(found))


def _sets(found: RunSnapshot) -> Table:
    notes = []
    if any(each.success for each in found.sets):
        notes.append("95 % intervals: bootstrap over tasks and their episodes.")
    if found.state != "finished" and any(each.done != each.total for each in found.sets):
        notes.append("Short episodes end first, so the rate of a set that is not done differs from "
                     "its end; none is shown before a tenth of it is done.")  # fmt: skip
    columns = ["episodes of", "success % [95 %]", "solved", "masked", "done"]
    made = table("", columns, caption=" ".join(notes))
    for each in found.sets:
        made.add_row(
            each.name,
            "–" if each.success is None else each.success.percent(),
            f"{each.solved:,}/{each.done - each.masked:,}",
            f"{each.masked:,}",
            f"{each.done:,}/{'?' if each.total is None else f'{each.total:,}'}",
        )
    return made
