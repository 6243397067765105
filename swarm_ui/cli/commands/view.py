"""``swarm-ui view``: the report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output


def view(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="a run's folder, or a trace file")],
    rebuild: Annotated[
        bool, flags.declare("--rebuild", help="write the report again", panel="")
    ] = False,
    show: Annotated[
        bool, flags.declare("--open/--no-open", help="open the report in the browser", panel="")
    ] = True,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Open the report of a run; create it first if it does not exist.

    The report is one self-contained HTML file.
    Example: [bold]swarm-ui view runs/demo[/]
    """
    from swarm_ui.experiment.reporting import run_report

    written = run / "report.html"
    path = written if written.is_file() and not rebuild else run_report(run)
    return Output(machine=json).report(path, browser=show)
