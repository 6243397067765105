"""Code shared by ``run`` and ``eval``: playing, final tables, exit codes and dry runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from rich.text import Text

from swarm_ui.cli import exits
from swarm_ui.cli.output import Output, table
from swarm_ui.cli.tables import comparison_table, measures_table, results_json, results_table
from swarm_ui.errors import BudgetExceeded, Failure
from swarm_ui.experiment import runs
from swarm_ui.experiment.comparing import compare_runs
from swarm_ui.experiment.config import Config
from swarm_ui.experiment.evaluation import finished_episodes
from swarm_ui.experiment.models import (
    IN_PROCESS,
    describe_model,
    kind_of,
    load_in_process,
)
from swarm_ui.experiment.results import Results
from swarm_ui.experiment.teams import configured_edges, team_size
from swarm_ui.storage.run_directory import RunDirectory


class Stopped(Exception):
    """A run was interrupted; the finished part is saved."""

    def __init__(self, run: Path, resume: str, cause: BaseException | None = None) -> None:
        super().__init__(f"saved in {run}; go on with: {resume}")
        self.run, self.resume, self.cause = run, resume, cause


def load_model(config: Config, out: Output) -> Any:
    """Load an in-process model outside the event loop, which would delay Ctrl-C.

    Returns ``None`` for other models.
    """
    if kind_of(config.model) not in IN_PROCESS:
        return None
    with out.busy(f"loading {config.model.name} …"):
        return load_in_process(config.model)


def play(
    evaluation: runs.EvaluationRun, directory: RunDirectory | None, out: Output
) -> tuple[RunDirectory, Results]:
    """Play the remaining episodes of a run. ``directory``: the resumed run; ``None``: a new run.

    Raises:
        Stopped: the run was interrupted, or the model's budget is used up.
    """
    run = directory or asyncio.run(runs.begin(evaluation))
    resume = f"swarm-ui {evaluation.command} --resume {run.path}"
    try:
        model = load_model(evaluation.config, out)
        return run, asyncio.run(runs.evaluate(evaluation, run, model, out.progress))
    except KeyboardInterrupt as error:
        raise Stopped(run.path, resume, error) from None
    except BudgetExceeded as error:
        raise Stopped(run.path, resume, error) from error


def show_outcome(
    evaluation: runs.EvaluationRun,
    run: RunDirectory,
    results: Results,
    out: Output,
    against: Path | None = None,
) -> int:
    """Show the results of a run; returns the exit code."""
    out.show(results_table(results))
    measures = measures_table(results)
    if measures is not None:
        out.show(measures)
    document: dict[str, object] = {"run": str(run.path), **results_json(results)}
    if against is not None:
        rows = compare_runs(run.path, against)
        out.show(comparison_table(rows, str(run.path), str(against)))
        document["against"] = [row.plain() for row in rows]
    faults = [fault for arm in results.arms for fault in arm.faults]
    for fault in dict.fromkeys(faults):
        out.warn(f"masked, not counted as failed: {fault}")
    if evaluation.config.run.report:
        from swarm_ui.experiment.reporting import evaluation_report

        path = evaluation_report(run, results)
        document["report"] = str(path)
        out.say(Text(f"report: {path}", overflow="fold"))
    out.say(Text(f"next: swarm-ui view {run.path}", overflow="fold"))
    code = _code(evaluation, results, faults)
    out.record({"ok": code == exits.OK, "exit": code, **document})
    return code


def show_plan(evaluation: runs.EvaluationRun, out: Output, run: RunDirectory | None = None) -> None:
    """Report which episodes would be played, or which episodes of ``run`` remain."""
    config = evaluation.config
    trials = [
        trial
        for split in evaluation.splits
        for trial in asyncio.run(runs.trials_of(evaluation, split))
    ]
    facts = {
        "environment": config.environment.name,
        "model": describe_model(config.model),
        "team": team_size(config.team),
        "edges": ", ".join(f"{a}>{b}" for a, b in configured_edges(config.team)) or "none",
        "out": str(run.path) if run is not None else config.run.out or "runs/<date>-…",
        **{f"episodes: {trial.name}": str(len(trial.jobs)) for trial in trials},
    }
    if run is not None:
        facts["of these done"] = str(sum(len(finished_episodes(run, t)) for t in trials))
    made = table("would be played, nothing is written", ["setting", "value"])
    made.columns[1].justify = "left"
    for name, value in facts.items():
        made.add_row(name, value)
    for task, seed in trials[0].jobs[:3]:
        made.add_row("such as", f"{task}, seed {seed}")
    out.show(made)
    out.record({"ok": True, "exit": exits.OK, "dry_run": True, **facts})


def _code(evaluation: runs.EvaluationRun, results: Results, faults: list[str]) -> int:
    counted = [value for value in results.outcomes if value is not None]
    if not counted:
        if not faults:
            return exits.ENVIRONMENT
        return exits.code_of(Failure.read(faults[0], "environment"))
    share = sum(counted) / len(counted)
    floor = evaluation.config.run.fail_under
    if floor is not None:
        return exits.OK if share >= floor else exits.NOT_GOOD
    if evaluation.command == "run" and len(results.outcomes) == 1:
        return exits.OK if share == 1.0 else exits.NOT_GOOD
    return exits.OK
