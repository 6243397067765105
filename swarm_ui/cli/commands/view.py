"""``swarm-ui view``: the report of a run."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output
from swarm_ui.errors import ConfigError


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
    """Write the report if necessary; returns its path."""
    from swarm_ui.experiment.reporting import (
        evaluation_report,
        is_report,
        trace_report,
        training_report,
    )
    from swarm_ui.experiment.results import existing_results
    from swarm_ui.report import write_report
    from swarm_ui.storage.run_directory import RunDirectory

    if not run.exists():
        raise ConfigError(f"there is no '{run}': expected a run's folder, or a trace file")
    if run.is_file():
        target = run.with_suffix(".html")
        if target.exists() and not is_report(target):
            raise ConfigError(f"'{target}' exists and is not a report of swarm-ui; the report of "
                              f"'{run}' would replace it: rename one of them")  # fmt: skip
        return trace_report(run, target)
    written = run / "report.html"
    if written.is_file() and not rebuild:
        return written
    directory = RunDirectory.open_existing(run)
    if directory.config().get("made_by") == "swarm-ui" and (run / "results.json").exists():
        return evaluation_report(directory, existing_results(run))
    if written.is_file() and (run / "results.json").exists():
        raise ConfigError(f"'{run}' is a run of a demo, which writes its report itself")
    if directory.config().get("command") == "train":
        return training_report(directory)
    return write_report(run)
