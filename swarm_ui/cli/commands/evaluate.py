"""``swarm-ui eval``: success over splits and seeds, with intervals."""

from __future__ import annotations

from swarm_ui.cli import exits, flags
from swarm_ui.cli.commands.outcome import play, show_outcome, show_plan
from swarm_ui.experiment.comparing import outcomes_of
from swarm_ui.experiment.runs import (
    EvaluationRun,
    check_config,
    first_split,
    resume_evaluation,
)


@flags.command(
    flags.ENVIRONMENT, flags.TASK, flags.SPLITS, flags.SEEDS, flags.SUITE, flags.PUBLISHED,
    flags.EPISODES, flags.MAX_STEPS, flags.DATA, flags.MODEL, flags.URL, flags.ADAPTERS,
    *flags.TEAM, flags.CONFIG, flags.SET, flags.AGAINST, flags.OUT, flags.CONCURRENCY,
    flags.FAIL_UNDER, *flags.ENDING,
)  # fmt: skip
def evaluate(arguments: flags.Arguments) -> int:
    """Measure success over splits and seeds, with 95 % intervals.

    Each seed selects its own episodes. Equal settings give equal episodes, so runs can be
    compared. Example: [bold]swarm-ui eval phone --split parameters --split apps -n 100[/]
    """
    output, directory = arguments.output, None
    against, splits, seeds = arguments["against"], arguments["split"], arguments["seed"]
    if against is not None:
        outcomes_of(str(against))  # an unreadable run is reported before anything is played
    if arguments["resume"] is not None:
        more = arguments.given("config", "split", "seed")
        overrides = arguments.draft(file=False)
        evaluation, directory = resume_evaluation(arguments["resume"], "eval", overrides, more)
    else:
        config = check_config(arguments.draft(), splits=splits or ())
        place = config.environment
        splits = tuple(splits or [place.split or first_split(place)])
        evaluation = EvaluationRun(config, splits, tuple(seeds or [place.seed]), "eval")
    if arguments["dry_run"]:
        show_plan(evaluation, output, directory)
        return exits.OK
    run, results = play(evaluation, directory, output)
    return show_outcome(evaluation, run, results, output, against)
