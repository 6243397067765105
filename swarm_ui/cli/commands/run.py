"""``swarm-ui run``: agents act in one task or in a suite."""

from __future__ import annotations

from swarm_ui.cli import flags
from swarm_ui.cli.outcome import perform


@flags.command(
    flags.ENVIRONMENT, flags.TASKS, flags.SPLIT, flags.SEED, *flags.ACTING, *flags.PLAYING
)
def run(arguments: flags.Arguments) -> int:
    """Run agents on one task or a suite; save every episode and write a report.

    Example: [bold]swarm-ui run phone contacts-add --agents 4 --vote probability --views shuffle[/]
    """
    return perform("run", arguments)
