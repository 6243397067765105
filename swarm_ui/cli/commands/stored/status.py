"""``swarm-ui status``: the progress of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from swarm_ui.cli import flags
from swarm_ui.cli.commands.stored.run_list import STATE_STYLES
from swarm_ui.cli.output import Output, table
from swarm_ui.experiment.live.panel import duration_text
from swarm_ui.experiment.progress import TaskProgress
from swarm_ui.experiment.stored.run_snapshot import RunSnapshot, snapshot


def status(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run, in any state")],
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Show the progress of a run: episodes, success so far, faults and time left.

    It only reads the files of the run, so it also works while another process or machine writes
    them. Example: [bold]swarm-ui status runs/solo[/]
    """
    output = Output(machine=json)
    found = snapshot(run)
    _show(found, output)
    return output.done(**msgspec.to_builtins(found))


def _show(found: RunSnapshot, out: Output) -> None:
    state = Text(found.state, style=STATE_STYLES.get(found.state, "red"))
    about = " · ".join(filter(None, [found.command, found.environment]))
    out.show(Text.assemble(f"{found.run}: ", state, f" · {about}" if about else ""))
    if found.problem:
        out.show(Text(found.problem, overflow="fold"))
    if found.elsewhere:
        out.show(Text(
            "No process of this machine works on it, but something was written a moment ago: "
            "it may be running on another machine.", overflow="fold",
        ))  # fmt: skip
    out.show(Text(_summary(found), overflow="fold"))
    for task in found.tasks:
        out.show(Text(_task(task), overflow="fold"))
    if found.sets:
        out.show(_sets(found))
    if found.faults:
        said = ", ".join(f"{kind} {count}" for kind, count in found.faults.items())
        out.show(Text(f"masked by faults, by kind: {said}", overflow="fold"))


def _summary(found: RunSnapshot) -> str:
    total = "" if found.total is None else f" of {found.total:,}"
    said = [f"{found.done:,}{total} episodes"]
    if found.left is not None:
        said.append(f"about {duration_text(found.left)} left")
    if found.silent is not None:
        said.append(f"last event {duration_text(found.silent)} ago")
    return ", ".join(said)


def _task(task: TaskProgress) -> str:
    share = task.done / task.total if task.total > 0 else 0.0
    said = [f"{min(1.0, share):.0%}", f"{duration_text(task.seconds)} so far", task.note]
    return f"{task.label}: {', '.join(filter(None, said))}"


def _sets(found: RunSnapshot) -> Any:
    notes = []
    if any(each.success for each in found.sets):
        notes.append("95 % intervals: bootstrap over tasks and their episodes.")
    if found.state != "finished" and any(each.done != each.total for each in found.sets):
        notes.append("Short episodes end first, so the rate of a set that is not done differs from "
                     "its end; none is shown before a tenth of it is done.")  # fmt: skip
    columns = ["episodes of", "success % [95 %]", "solved", "masked", "done"]
    made = table("", columns, caption=" ".join(notes))
    for each in found.sets:
        total = "?" if each.total is None else f"{each.total:,}"
        made.add_row(
            each.name,
            "–" if each.success is None else each.success.percent(),
            f"{each.solved:,}/{each.done - each.masked:,}",
            f"{each.masked:,}",
            f"{each.done:,}/{total}",
        )
    return made
