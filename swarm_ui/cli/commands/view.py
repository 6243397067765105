"""``swarm-ui view``: the report of a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

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
    output = Output(machine=json)
    path = _report(run, rebuild)
    output.show(Text(f"report: {path}", overflow="fold"))
    if show and not webbrowser.open(path.resolve().as_uri()):
        output.say("no browser could be opened: open the file yourself")
    return output.done(report=str(path))


def _report(run: Path, rebuild: bool) -> Path:
    """The report, which is written if necessary; returns its path."""
    from swarm_ui.experiment.reporting import run_report

    written = run / "report.html"
    return written if written.is_file() and not rebuild else run_report(run)
