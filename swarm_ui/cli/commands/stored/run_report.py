"""``swarm-ui report``: the report of a run, or one page about several runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output

_DEFAULT = Path("report.html")


def report(
    paths: Annotated[list[Path], typer.Argument(metavar="RUN...", help="folders of runs; or one "
                     "trace file")],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="where to "
                   "write it (default: one run: its folder; several: report.html)")] = None,
    show: Annotated[
        bool, flags.declare("--open/--no-open", help="open the report in the browser", panel="")
    ] = False,
    json: flags.Json = False,
) -> int:  # fmt: skip
    """Write the report of a run; or of several runs, one page on which they are overlaid.

    That page has the learning curves in one chart, success by split, the settings that differ, and
    links to each run's own report. Example: [bold]swarm-ui report runs/a runs/b -o both.html[/]
    """
    from swarm_ui.experiment.reporting import current_report
    from swarm_ui.experiment.stored.overlay import overlay_report

    if len(paths) > 1:
        path = overlay_report(paths, out or _DEFAULT)
    else:
        path = current_report(paths[0], out)
    return Output(machine=json).report(path, browser=show)
