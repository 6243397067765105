"""``swarm-ui compare``: two runs on the same episodes."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output
from swarm_ui.cli.tables import comparison_table
from swarm_ui.experiment.comparing import compare_runs

_WHAT = "a run, or a trace file"


def compare(
    ours: Annotated[str, typer.Argument(metavar="A", help=_WHAT)],
    theirs: Annotated[str, typer.Argument(metavar="B", help=_WHAT)],
    json: flags.Json = False,
) -> int:
    """Compare two runs episode by episode: A minus B, with a paired 95 % interval.

    Only episodes that both runs played without a fault are compared.
    Example: [bold]swarm-ui compare runs/team runs/one-agent[/]
    """
    output = Output(machine=json)
    rows = compare_runs(ours, theirs)
    output.show(comparison_table(rows, ours, theirs))
    return output.done(a=ours, b=theirs, rows=msgspec.to_builtins(rows))
