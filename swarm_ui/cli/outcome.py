"""``eval``: playing, final tables, exit codes and dry runs."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from swarm_ui.cli import exits, flags
from swarm_ui.cli.output import Output, facts_table
from swarm_ui.cli.tables import (
    comparison_table,
    failure_table,
    failures,
    measures_table,
    results_json,
    results_table,
)
from swarm_ui.environments.benchmark import Benchmark
from swarm_ui.errors import BudgetExceeded, ConfigError, Failure
from swarm_ui.experiment import Run, evaluate
from swarm_ui.experiment.comparing import compare_runs
from swarm_ui.experiment.config import Config, Local
from swarm_ui.experiment.evaluation import finished_episodes
from swarm_ui.experiment.loading import expect_read, load
from swarm_ui.experiment.model_settings import Agent, AnyModel, Language
from swarm_ui.experiment.models import describe_model, load_in_process
from swarm_ui.experiment.place import describe_place
from swarm_ui.experiment.playing import check_code, evaluation_of, expect_ready, trials_of
from swarm_ui.experiment.teams import configured_edges, team_size
from swarm_ui.files import being_written
from swarm_ui.report.results import Results

T = TypeVar("T")
_UNREAD = ("train.", "critic.", "synthesize.", "finetune.", "model.actor", "env.held_out")
"""Settings that are for other commands."""


class Stopped(Exception):
    """A run was interrupted; the finished part is saved."""

    def __init__(self, run: Path, resume: str, cause: BaseException | None = None) -> None:
        super().__init__(f"saved in {run}; continue with: {resume}")
        self.run, self.resume, self.cause = run, resume, cause


def loaded(model: AnyModel, out: Output, learned: Sequence[str] = ()) -> Any:
    """Load an in-process model outside the event loop, so that Ctrl-C works without delay.

    ``learned``: adapters that are to be trained. Returns ``None`` for other models.
    """
    if not isinstance(model, Agent | Language):
        return None
    with out.busy(f"loading {model.name} …"):
        return load_in_process(model, learned)


def perform(arguments: flags.Arguments) -> int:
    """Play the episodes that the arguments name, or the rest of a run, and show the results.

    Raises:
        Stopped: the run was interrupted, or the model's budget is used up.
    """
    expect_read(arguments.overrides, _UNREAD, "eval")
    output, run = arguments.output, _existing(arguments)
    if run is None:
        config = load(arguments["config"], arguments.in_environment())
        config = config.model_copy(update={"eval": evaluation_of(config)})
    else:
        config = run.config
    if arguments["dry_run"]:
        return _show_plan(run, config, arguments)
    new, named = run is None, arguments["out"] is not None
    run = begun(config, arguments["out"], "eval") if run is None else run
    tested, _ = run.tested()

    def play() -> Results:
        # Workers of a cluster load their own model.
        here = isinstance(config.place, Local)
        model = loaded(tested.model, output) if here else None
        return evaluate(run, model=model, show=output.progress, warn=output.warn)

    again = run.words("eval", [_word(given) for given in arguments.overrides])
    results = stoppable(run, again, play, new=new, named=named)
    return _show_outcome(run, results, arguments, again)


def _word(override: str) -> str:
    """A setting as a word of a command, without the name of the option that gave it."""
    option, _, setting = override.partition(" ")
    return setting if option.startswith("--") else override


def _existing(arguments: flags.Arguments) -> Run | None:
    """The run to continue, or the training whose team is tested; ``None``: a new run."""
    old, trust = arguments["resume"], arguments["trust"]
    if old is not None:
        flags.expect_none(arguments, "config", "out")
        return Run.open(old, arguments.in_environment(), command="eval", trust=trust)
    first = Path(next(iter(arguments.words), ""))
    if not (first / "config.json").is_file():
        return None
    flags.expect_none(arguments, "config", "out")
    if more := arguments.words[1:]:
        raise ConfigError(f"'{more[0]}': the tasks of a trained team are those of the split")
    return Run.open(first, arguments.overrides, trust=trust)


def begun(config: Config, out: Path | None, command: str) -> Run:
    """A new run with its folder, after a check of what it needs."""
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(
            f"--out: '{out}' exists and is not empty; choose another, or continue the run with "
            f"--resume {out}"
        )
    asyncio.run(expect_ready(config, learning=command == "train"))
    return Run.create(out, config, command=command)


def stoppable(run: Run, again: list[str], work: Callable[[], T], *, new: bool, named: bool) -> T:
    """Do the work of a run that has begun; ``again``: the words of the command that continues it.

    If the work of a ``new`` run fails before anything is written, its directory is deleted;
    ``named``: the user chose it.

    Raises:
        Stopped: it was interrupted, or a budget is used up.
    """
    path, resume = run.path, shlex.join(again)
    try:
        return work()
    except KeyboardInterrupt as error:
        raise Stopped(path, resume, error) from None
    except BudgetExceeded as error:
        raise Stopped(path, resume, error) from error
    except Exception:
        if new and not being_written(path):  # not the folder of a process that holds the lock
            run.discard_if_unused(named=named)
        raise


def _show_outcome(run: Run, results: Results, arguments: flags.Arguments, again: list[str]) -> int:
    """Show the results of a run; returns the exit code."""
    out, against = arguments.output, arguments["against"]
    path, most = run.path, run.config.eval.max_masked
    out.show(results_table(results, most))
    measures = measures_table(results)
    if measures is not None:
        out.show(measures)
    document: dict[str, object] = {"run": str(path), **results_json(results, most)}
    document["failures"] = failed = failures(results)
    if failed:
        out.show(failure_table(failed))
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
            f"masked, more than eval.max_masked {most:g}"
        )
    if refused:
        out.command("to play the masked episodes again", *again)
    if run.config.run.report:
        from swarm_ui.experiment.reporting import run_report

        document["report"] = str(run_report(path))
        out.say(f"report: {document['report']}")
    out.command("next", "swarm-ui", "view", str(path))
    document["no_conclusion"] = [arm.name for arm in refused]
    code = _code(run, results, faults, bool(refused))
    out.record({"ok": code == exits.OK, "exit": code, **document})
    return code


def _show_plan(run: Run | None, config: Config, arguments: flags.Arguments) -> int:
    """Report which episodes would be played, or which episodes of a run remain."""
    output = arguments.output
    team = config.team.filled(learning=False)
    if run is None:  # a dry run of a run that has begun makes no model
        asyncio.run(check_code(config, learning=False))
    else:
        config, team = run.tested()
    trials = asyncio.run(trials_of(config, evaluation_of(config)))
    facts = {
        "environment": environment_shown(config.env),
        "model": describe_model(config.model),
        "team": team_size(team),
        "edges": ", ".join(f"{a}>{b}" for a, b in configured_edges(team)) or "none",
        "place": describe_place(config),
        "out": str(run.path if run is not None else arguments["out"] or "runs/<date>-…"),
        **{f"episodes: {trial.name}": str(len(trial.jobs)) for trial in trials},
    }
    if run is not None:
        facts["of these done"] = str(sum(len(finished_episodes(run.folder, t)) for t in trials))
    examples = [("such as", f"{task}, seed {seed}") for task, seed in trials[0].jobs[:3]]
    title = "would be played, nothing is written"
    output.show(facts_table(title, [*facts.items(), *examples]))
    return output.done(dry_run=True, **facts)


def environment_shown(env: Benchmark) -> str:
    """The environment with its wrappers."""
    return env.name + (f" in {', '.join(env.wrap)}" if env.wrap else "")


def _code(run: Run, results: Results, faults: list[Failure], refused: bool) -> int:
    counted = [value for value in results.outcomes if value is not None]
    if refused or not counted:
        if not faults:
            return exits.ENVIRONMENT
        return exits.code_of(faults[0])
    share = sum(counted) / len(counted)
    floor = run.config.eval.fail_under
    if floor is None:  # a single episode must be solved
        floor = 1.0 if len(results.outcomes) == 1 else 0.0
    return exits.OK if share >= floor else exits.NOT_GOOD
