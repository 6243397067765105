"""``swarm-ui status``: the progress of a run, and the state of its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
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
from swarm_ui.experiment.stored.run_snapshot import RunSnapshot, WorkerStatus, snapshot
from swarm_ui.report.workers.worker_rows import HERE

_MOST_WORKERS = 16
"""Maximum number of listed workers; more are counted by node."""


def status(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="folder of a run, in any state")],
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Show the progress of a run: episodes, success so far, faults, rate, time left and workers.

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
    if shown := _workers(found):
        out.show(shown)


def _summary(found: RunSnapshot) -> str:
    total = "" if found.total is None else f" of {found.total:,}"
    said = [f"{found.done:,}{total} episodes"]
    if found.per_minute is not None:
        said.append(f"{found.per_minute:.1f} a minute")
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


def _workers(found: RunSnapshot) -> Any:
    """The workers as a table; ``None`` if there is nothing to show."""
    present = [worker for worker in found.workers if worker.state != "closed"]
    if not present:
        return None
    title = f"workers: {_counted(found.workers)}"
    return _each(title, found.workers) if len(found.workers) <= _MOST_WORKERS else _by_node(
        title, found.workers)  # fmt: skip


def _each(title: str, workers: Sequence[WorkerStatus]) -> Any:
    made = table(title, ["worker", "node", "state", "episodes", "faults", "last sign", "what"],
                 left=True)  # fmt: skip
    for worker in workers:
        made.add_row(
            str(worker.worker),
            worker.node or HERE,
            worker.state.replace("_", " "),
            f"{worker.episodes:,}",
            f"{worker.faults:,}",
            f"{duration_text(worker.silent)} ago",
            "; ".join(worker.playing) or worker.text,
        )
    return made


def _by_node(title: str, workers: Sequence[WorkerStatus]) -> Any:
    nodes: dict[str, list[WorkerStatus]] = {}
    for worker in workers:
        nodes.setdefault(worker.node or HERE, []).append(worker)
    made = table(title, ["node", "workers", "episodes", "faults", "last sign", "states"], left=True)
    for node, part in nodes.items():
        made.add_row(
            node,
            f"{len(part):,}",
            f"{sum(worker.episodes for worker in part):,}",
            f"{sum(worker.faults for worker in part):,}",
            f"{duration_text(min(worker.silent for worker in part))} ago",
            _counted(part),
        )
    return made


def _counted(workers: Iterable[WorkerStatus]) -> str:
    states = Counter(worker.state.replace("_", " ") for worker in workers)
    return ", ".join(f"{count} {state}" for state, count in states.most_common())
