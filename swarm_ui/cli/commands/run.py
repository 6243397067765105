"""``swarm-ui run``: agents act in one task or in a suite."""

from __future__ import annotations

from swarm_ui.cli import exits, flags
from swarm_ui.cli.commands.outcome import play, show_outcome, show_plan
from swarm_ui.experiment.runs import (
    EvaluationRun,
    check_config,
    first_split,
    resume_evaluation,
)


@flags.command(
    flags.ENVIRONMENT, flags.TASKS, flags.SPLIT, flags.SEED, flags.SUITE, flags.EPISODES,
    flags.MAX_STEPS, flags.DATA, flags.MODEL, flags.URL, flags.ADAPTERS, *flags.TEAM,
    flags.CONFIG, flags.SET, flags.OUT, flags.CONCURRENCY, flags.FAIL_UNDER, *flags.ENDING,
)  # fmt: skip
def run(arguments: flags.Arguments) -> int:
    """Run agents on one task or a suite; save every episode and write a report.

    Example: [bold]swarm-ui run phone contacts-add --agents 4 --vote probability --views shuffle[/]
    """
    output, directory = arguments.output, None
    if arguments["resume"] is not None:
        evaluation, directory = resume_evaluation(
            arguments["resume"], "run", arguments.draft(file=False), arguments.given("config")
        )
    else:
        config = check_config(arguments.draft())
        place = config.environment
        splits = (place.split or first_split(place),)
        evaluation = EvaluationRun(config, splits, (place.seed,), "run")
    if arguments["dry_run"]:
        show_plan(evaluation, output, directory)
        return exits.OK
    run, results = play(evaluation, directory, output)
    return show_outcome(evaluation, run, results, output)
