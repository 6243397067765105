"""``swarm-ui config``: writes a commented configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import exits, flags
from swarm_ui.cli.out_files import expect_new, writing
from swarm_ui.cli.output import Output
from swarm_ui.experiment.loading import template
from swarm_ui.files import write_atomic


def config(
    path: Annotated[Path, typer.Argument(metavar="FILE",
                                         help="file to write; - for standard output")]
    = Path("swarm-ui.toml"),
    force: flags.Force = False,
) -> int:  # fmt: skip
    """Write a commented configuration file.

    Example: [bold]swarm-ui config swarm-ui.toml[/]
    """
    output = Output()
    if str(path) == "-":
        output.lines(template())
        return exits.OK
    expect_new(path, force)
    with writing(path):
        write_atomic(path, template())
    output.say(f"wrote {path}")
    output.command("next", "swarm-ui", "eval", "--config", str(path), "--dry-run")
    return exits.OK
