"""``swarm-ui eval``: agents act in a task, a suite or a split; success with intervals."""

from __future__ import annotations

from swarm_ui.cli import flags
from swarm_ui.cli.outcome import perform
from swarm_ui.experiment.comparing import arms_of


@flags.command(
    flags.ENVIRONMENT, flags.TASKS, flags.SPLITS, flags.SEEDS, flags.PUBLISHED,
    *flags.ACTING, flags.AGAINST, *flags.PLAYING,
)  # fmt: skip
def evaluate(arguments: flags.Arguments) -> int:
    """Play one task, a suite or a split, and measure success with 95 % intervals.

    Each seed selects its own episodes. Equal settings give equal episodes, so runs can be
    compared. Example: [bold]swarm-ui eval phone contacts-add --agents 4[/] or
    [bold]swarm-ui eval phone --split parameters --split apps -n 100[/]
    """
    against, splits, seeds = arguments["against"], arguments["split"], arguments["seed"]
    if against is not None:
        arms_of(str(against))  # an unreadable run is reported before anything is played
    return perform(arguments, splits or (), seeds or (), against)
