"""``eval``: playing, final tables, exit codes and dry runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from swarm_ui.cli import exits, flags
from swarm_ui.cli.failure_table import failure_rows, failure_table
from swarm_ui.cli.output import Output, facts_table
from swarm_ui.cli.tables import (
    comparison_table,
    measures_table,
    results_json,
    results_table,
    task_rows,
    tasks_table,
)
from swarm_ui.errors import BudgetExceeded, Failure
from swarm_ui.experiment import runs
from swarm_ui.experiment.comparing import compare_runs
from swarm_ui.experiment.config import Config, EnvironmentSection
from swarm_ui.experiment.evaluation import finished_episodes
from swarm_ui.experiment.models import IN_PROCESS, describe_model, kind_of, load_in_process
from swarm_ui.experiment.placement.place import on_ray
from swarm_ui.experiment.progress import recorded_progress
from swarm_ui.experiment.stored import running
from swarm_ui.experiment.teams import configured_edges, team_size
from swarm_ui.report.results import Results
from swarm_ui.storage.run_directory import RunDirectory


class Stopped(Exception):
    """A run was interrupted; the finished part is saved."""

    def __init__(self, run: Path, resume: str, cause: BaseException | None = None) -> None:
        super().__init__(f"saved in {run}; continue with: {resume}")
        self.run, self.resume, self.cause = run, resume, cause


def load_model(config: Config, out: Output, learned: Sequence[str] = ()) -> Any:
    """Load an in-process model outside the event loop, so that Ctrl-C works without delay.

    ``learned``: adapters that are to be trained. Returns ``None`` for other models.
    """
    if kind_of(config.model) not in IN_PROCESS:
        return None
    with out.busy(f"loading {config.model.name} …"):
        return load_in_process(config.model, learned)


def perform(
    arguments: flags.Arguments,
    splits: Sequence[str] = (),
    seeds: Sequence[int] = (),
    against: Path | None = None,
) -> int:
    """Play the episodes that the arguments name, or the rest of a run, and show the results.

    Args:
        arguments: what the user gave.
        splits, seeds: used instead of those of the configuration.
        against: a run to compare with.

    Raises:
        Stopped: the run was interrupted, or the model's budget is used up.
    """
    output = arguments.output
    if arguments["resume"] is not None:
        given = arguments.given("config", "split", "seed")
        run = runs.resume(
            arguments["resume"], "eval", arguments.draft(*flags.PLAYED, file=False), given,
            trusted=arguments["trust"],
        )  # fmt: skip
    else:
        config = runs.check_config(arguments.draft(*flags.PLAYED), splits=splits, seeds=seeds)
        place = config.environment
        first = place.split or runs.first_split(place)
        run = runs.Run(config, "eval", tuple(splits or [first]), tuple(seeds or [place.seed]))
    if arguments["dry_run"]:
        return _show_plan(run, output)
    new, run = run.directory is None, begun(run)

    def play() -> Any:
        # Workers of a cluster load their own model.
        model = None if on_ray(run.config) else load_model(run.config, output)
        return asyncio.run(runs.evaluate(run, model, output.progress, output.warn))

    with recorded_progress(output.progress, run.folder.path, output.warn):
        results: Results = stoppable(run, play, new=new)
    if arguments["per_task"]:
        output.show(tasks_table(results))
    return _show_outcome(run, results, output, against, per_task=arguments["per_task"])


def begun(run: runs.Run) -> runs.Run:
    """The run with its directory and the folders in it, which are made if they do not exist."""
    if run.directory is None:
        return asyncio.run(runs.begin(run))
    return replace(run, directory=RunDirectory.open_existing(run.folder.path))


def stoppable(run: runs.Run, work: Callable[[], Any], *, new: bool) -> Any:
    """Do the work of a run that has begun.

    If the work of a ``new`` run fails before anything is written, its directory is deleted.

    Raises:
        Stopped: it was interrupted, or a budget is used up.
    """
    path, command, ours = run.folder.path, run.resume_command, False
    try:
        with running(run.folder):
            ours = True
            return work()
    except KeyboardInterrupt as error:
        raise Stopped(path, command, error) from None
    except BudgetExceeded as error:
        raise Stopped(path, command, error) from error
    except Exception:
        if new and ours:  # not the folder of a process that holds the lock
            runs.discard_if_unused(run)
        raise


def _show_outcome(
    run: runs.Run, results: Results, out: Output, against: Path | None, *, per_task: bool
) -> int:
    """Show the results of a run; returns the exit code."""
    path = run.folder.path
    most = run.config.run.max_masked
    out.show(results_table(results, most))
    measures = measures_table(results)
    if measures is not None:
        out.show(measures)
    document: dict[str, object] = {"run": str(path), **results_json(results, most)}
    failed = failure_rows(results, run.folder)
    if failed:
        out.show(failure_table(failed))
        if (example := next((row.example for row in failed if row.example), None)) is not None:
            place = run.folder.traces / f"{example.trace}.jsonl"
            out.command("an example", "swarm-ui", "replay", str(place), "-e", str(example.episode))
    document["failures"] = msgspec.to_builtins(failed)
    if per_task:
        document["tasks"] = task_rows(results)
    if against is not None:
        rows = compare_runs(path, against)
        out.show(comparison_table(rows, str(path), str(against)))
        document["against"] = msgspec.to_builtins(rows)
    faults = [fault for arm in results.arms for fault in arm.faults]
    for fault in dict.fromkeys(map(str, faults)):
        out.warn(f"masked, not counted as failed: {fault}")
    refused = [arm for arm in results.arms if not arm.concludes(most)]
    for arm in refused:
        out.warn(
            f"no conclusion about {arm.name}: {arm.masked} of {len(arm.outcomes)} episodes are "
            f"masked, more than --max-masked {most:g}"
        )
    if refused:
        out.command("to play the masked episodes again", *run.resume_words)
    if run.config.run.report:
        from swarm_ui.experiment.reporting import run_report

        document["report"] = str(run_report(path))
        out.say(f"report: {document['report']}")
    out.command("next", "swarm-ui", "view", str(path))
    document["no_conclusion"] = [arm.name for arm in refused]
    code = _code(run, results, faults, bool(refused))
    out.record({"ok": code == exits.OK, "exit": code, **document})
    return code


def _show_plan(run: runs.Run, out: Output) -> int:
    """Report which episodes would be played, or which episodes of a run remain."""
    config, folder = run.config, run.directory
    if folder is None:  # a dry run of a run that has begun makes no model
        asyncio.run(runs.check_code(run))
    trials = [t for split in run.splits for t in asyncio.run(runs.trials_of(run, split))]
    facts = {
        "environment": environment_shown(config.environment),
        "model": describe_model(config.model),
        "team": team_size(config.team),
        "edges": ", ".join(f"{a}>{b}" for a, b in configured_edges(config.team)) or "none",
        "place": config.run.on or "local",
        "out": str(folder.path) if folder is not None else config.run.out or "runs/<date>-…",
        **{f"episodes: {trial.name}": str(len(trial.jobs)) for trial in trials},
    }
    if folder is not None:
        facts["of these done"] = str(sum(len(finished_episodes(folder, t)) for t in trials))
    examples = [("such as", f"{task}, seed {seed}") for task, seed in trials[0].jobs[:3]]
    title = "would be played, nothing is written"
    out.show(facts_table(title, [*facts.items(), *examples]))
    return out.done(dry_run=True, **facts)


def environment_shown(section: EnvironmentSection) -> str:
    """The environment with its wrappers."""
    return section.name + (f" in {', '.join(section.wrap)}" if section.wrap else "")


def _code(run: runs.Run, results: Results, faults: list[Failure], refused: bool) -> int:
    counted = [value for value in results.outcomes if value is not None]
    if refused or not counted:
        if not faults:
            return exits.ENVIRONMENT
        return exits.code_of(faults[0])
    share = sum(counted) / len(counted)
    floor = run.config.run.fail_under
    if floor is None:  # a single episode must be solved
        floor = 1.0 if len(results.outcomes) == 1 else 0.0
    return exits.OK if share >= floor else exits.NOT_GOOD
