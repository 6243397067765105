"""``swarm-ui eval``: success over splits and seeds, with intervals."""

from __future__ import annotations

from swarm_ui.cli import flags
from swarm_ui.cli.outcome import perform
from swarm_ui.experiment.comparing import outcomes_of


@flags.command(
    flags.ENVIRONMENT, flags.TASK, flags.SPLITS, flags.SEEDS, flags.PUBLISHED,
    *flags.ACTING, flags.AGAINST, *flags.PLAYING,
)  # fmt: skip
def evaluate(arguments: flags.Arguments) -> int:
    """Measure success over splits and seeds, with 95 % intervals.

    Each seed selects its own episodes. Equal settings give equal episodes, so runs can be
    compared. Example: [bold]swarm-ui eval phone --split parameters --split apps -n 100[/]
    """
    against, splits, seeds = arguments["against"], arguments["split"], arguments["seed"]
    if against is not None:
        outcomes_of(str(against))  # an unreadable run is reported before anything is played
    return perform("eval", arguments, splits or (), seeds or (), against)
