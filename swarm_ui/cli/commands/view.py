"""``swarm-ui view``: the report of a run, or of several."""

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
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="runs' folders, or trace "
                    "files; the others are compared with the first")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="where to write "
                   "the report (default: report.html in the folder of the run; of several runs: in "
                   "the present folder)")] = None,
    follow: Annotated[bool, flags.declare("--follow", "-f", help="while the run plays, write the "
                      "report again every few seconds; the page in the browser follows",
                      panel="")] = False,
    show: Annotated[
        bool, flags.declare("--open/--no-open", help="open the report in the browser", panel="")
    ] = True,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Write the report of a run, or of several that are compared, and open it.

    The report is one self-contained HTML file.
    Example: [bold]swarm-ui view runs/one-agent runs/team[/]
    """
    from swarm_ui.experiment.reporting import run_report
    from swarm_ui.experiment.stored import state_of
    from swarm_ui.storage.run_directory import RunDirectory

    output = Output(machine=json)
    if follow and runs[0].is_dir():
        while state_of(RunDirectory(runs[0]))[0] == "running":
            path = run_report(*runs, to=out, refresh=_SECONDS)
            if show:
                output.open(path)
                show = False
            time.sleep(_SECONDS)
    return output.report(run_report(*runs, to=out), browser=show)
