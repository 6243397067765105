"""``swarm-ui view``: the report of a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output

_SECONDS = 5
"""Time between two reports of a run that is followed."""


def view(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run's folder, or a trace file")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="where to write "
                   "the report (default: report.html in the folder of the run)")] = None,
    follow: Annotated[bool, flags.declare("--follow", "-f", help="while the run plays, write the "
                      "report again every few seconds; the page in the browser follows",
                      panel="")] = False,
    show: Annotated[
        bool, flags.declare("--open/--no-open", help="open the report in the browser", panel="")
    ] = True,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Write the report of a run and open it.

    The report is one self-contained HTML file.
    Example: [bold]swarm-ui view runs/demo[/]
    """
    from swarm_ui.experiment.reporting import current_report
    from swarm_ui.experiment.stored.run_status import state_of
    from swarm_ui.storage.run_directory import RunDirectory

    output = Output(machine=json)
    if follow and run.is_dir():
        while state_of(RunDirectory(run))[0] == "running":
            path = current_report(run, out, refresh=_SECONDS)
            if show:
                output.open(path)
                show = False
            time.sleep(_SECONDS)
    return output.report(current_report(run, out), browser=show)
