"""``eval``, ``compare`` and ``play``: agents act, or a person does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from swarm_ui.cli import exits, flags, tables
from swarm_ui.cli.outcome import begun, loaded, show_plan, stoppable
from swarm_ui.environments.benchmark import Benchmark
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.experiment import Run
from swarm_ui.experiment import evaluate as evaluate_run
from swarm_ui.experiment.benchmarks import kind_of_environment, opened
from swarm_ui.experiment.config import Config, Local
from swarm_ui.experiment.loading import expect_read, load
from swarm_ui.experiment.playing import (
    check_code,
    compare_runs,
    evaluation_of,
    finished_episodes,
    trials_of,
)
from swarm_ui.experiment.teams import configured_edges
from swarm_ui.experiment.terminal import printable
from swarm_ui.report.results import Results

_UNREAD = ("train.", "critic.", "synthesize.", "finetune.", "model.actor", "env.held_out")
"""Settings that are for other commands."""


@flags.command(
    flags.ENVIRONMENT,
    flags.option("split", list[str], "NAME", "part of the tasks (default: the first); repeatable",
                 setting="eval.split"),
    flags.option("seed", list[int], "N", "chooses the episodes (default: 0); repeatable",
                 setting="eval.seed"),
    flags.option("episodes", int, "N", "their number (default: 20, or one for each named task)",
                 "-n", setting="eval.episodes", least=1),
    flags.MODEL, flags.URL, flags.ADAPTERS, flags.AGENTS, flags.ROUNDS, flags.EDGES,
    flags.option("fail_under", float, "SHARE", "exit with 1 if a smaller share is solved (default: "
                 "1 for one episode, else 0)", setting="eval.fail_under", panel=flags.HOW),
    flags.option("concurrency", int, "N", "concurrent episodes in this process (default: 8)", "-j",
                 setting="place.concurrency"),
    flags.ON, flags.OUT, *flags.ENDING,
)  # fmt: skip
def evaluate(arguments: flags.Arguments) -> int:
    """Play one task, a suite or a split, and measure success with 95 % intervals.

    With the folder of a training in the place of ENV, its trained team acts. Equal settings give
    equal episodes, so runs can be compared.
    Example: [bold]swarm-ui eval phone contacts-add --agents 4[/] or
    [bold]swarm-ui eval phone --split parameters --split apps -n 100 team.temperature=0.5[/]
    """
    expect_read(arguments.overrides, _UNREAD, "eval")
    output, out, run = arguments.output, arguments["out"], _existing(arguments)
    new = run is None
    if run is None:
        config = load(arguments["config"], arguments.in_environment())
        config = config.model_copy(update={"eval": evaluation_of(config)})
    else:
        config = run.config
    if arguments["dry_run"]:
        return _show_plan(run, config, arguments)
    run = begun(config, out, "eval") if run is None else run
    tested, _ = run.tested()

    def play() -> Results:
        # Workers of a cluster load their own model.
        here = isinstance(config.place, Local)
        model = loaded(tested.model, output) if here else None
        return evaluate_run(run, model=model, show=output.progress, warn=output.warn)

    # Settings as words of a command, without the names of the options that gave them.
    words = [given.partition(" ")[2] if given.startswith("--") else given
             for given in arguments.overrides]  # fmt: skip
    again = run.words("eval", words)
    results = stoppable(run, again, play, new=new, named=out is not None)
    return _show_outcome(run, results, arguments, again)


def _existing(arguments: flags.Arguments) -> Run | None:
    """The run to continue, or the training whose team is tested; ``None``: a new run."""
    old, trust = arguments["resume"], arguments["trust"]
    if old is not None:
        arguments.expect_none("config", "out")
        return Run.open(old, arguments.in_environment(), command="eval", trust=trust)
    first = Path(next(iter(arguments.words), ""))
    if not (first / "config.json").is_file():
        return None
    arguments.expect_none("config", "out")
    if more := arguments.words[1:]:
        raise ConfigError(f"'{more[0]}': the tasks of a trained team are those of the split")
    return Run.open(first, arguments.overrides, trust=trust)


def _show_outcome(run: Run, results: Results, arguments: flags.Arguments, again: list[str]) -> int:
    """Show the results of a run; returns the exit code."""
    out, path = arguments.output, run.path
    most, failed = run.config.eval.max_masked, tables.failures(results)
    out.show(tables.results_table(results, most))
    for shown in (tables.measures_table(results), tables.failure_table(failed)):
        if shown.row_count:
            out.show(shown)
    refused = [arm for arm in results.arms if not arm.concludes(most)]
    document: dict[str, object] = {
        "run": str(path), **tables.results_json(results, most), "failures": failed,
        "no_conclusion": [arm.name for arm in refused],
    }  # fmt: skip
    faults = [fault for arm in results.arms for fault in arm.faults]
    for fault in dict.fromkeys(map(str, faults)):
        out.warn(f"masked, not counted as failed: {fault}")
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
    return out.done(_code(run, results, faults, bool(refused)), **document)


def _code(run: Run, results: Results, faults: Sequence[Failure], refused: bool) -> int:
    counted = [value for value in results.outcomes if value is not None]
    if refused or not counted:
        return exits.code_of(faults[0]) if faults else exits.ENVIRONMENT
    floor = run.config.eval.fail_under
    if floor is None:  # a single episode must be solved
        floor = 1.0 if len(results.outcomes) == 1 else 0.0
    return exits.OK if sum(counted) / len(counted) >= floor else exits.NOT_GOOD


def _show_plan(run: Run | None, config: Config, arguments: flags.Arguments) -> int:
    """Report which episodes would be played, or which episodes of a run remain."""
    team = config.team.filled(learning=False)
    if run is None:  # a dry run of a run that has begun makes no model
        asyncio.run(check_code(config, learning=False))
    else:
        config, team = run.tested()
    trials = asyncio.run(trials_of(config, evaluation_of(config)))
    facts = {f"episodes: {trial.name}": str(len(trial.jobs)) for trial in trials}
    if run is not None:
        facts["of these done"] = str(sum(len(finished_episodes(run.folder, t)) for t in trials))
    facts["such as"] = "; ".join(f"{task}, seed {seed}" for task, seed in trials[0].jobs[:3])
    edges = ", ".join(f"{a}>{b}" for a, b in configured_edges(team)) or "none"
    return show_plan(arguments, run, config, team, edges=edges, **facts)


@flags.command(flags.words("A B", "two runs, or trace files", flags.one_of()), flags.JSON)
def compare(arguments: flags.Arguments) -> int:
    """Compare two runs episode by episode: A minus B, with a paired 95 % interval.

    Only episodes that both runs played without a fault are compared.
    Example: [bold]swarm-ui compare runs/team runs/one-agent[/]
    """
    given = arguments["words"] or []
    if len(given) != 2:
        raise ConfigError(f"name two runs, or trace files, to compare; got {len(given)}")
    ours, theirs = given
    rows = compare_runs(ours, theirs)
    arguments.output.show(tables.comparison_table(rows, ours, theirs))
    return arguments.output.done(a=ours, b=theirs, rows=msgspec.to_builtins(rows))


@flags.command(
    flags.words("ENV [TASK] [SETTING=VALUE...]", "an environment; a task to do (without it, tasks "
                "are listed); settings of the environment, such as env.data=PATH"),
    flags.option("seed", int, "N", "seed of the episode", default=0),
    flags.option("out", Path, "FILE", "JSON Lines file to append the episode to", "-o", panel=""),
)  # fmt: skip
def play(arguments: flags.Arguments) -> int:
    """Do a task by hand on a web page, and record it as an episode.

    Example: [bold]swarm-ui play phone contacts-add --out mine.jsonl[/]
    """
    env, *rest = arguments.words or [""]
    given = [f"ENV env.name={json.dumps(env)}", *arguments.overrides]
    if "screenshots" in kind_of_environment(env).model_fields:
        given.insert(0, "env.screenshots=true")
    section = load(overrides=given).env
    if rest and (mistake := section.unknown_task(rest[0])):
        raise ConfigError(mistake)
    asyncio.run(_play(section, next(iter(rest), None), arguments))
    return exits.OK


async def _play(section: Benchmark, task: str | None, arguments: flags.Arguments) -> None:
    from swarm_ui.environments.play import play_in_browser
    from swarm_ui.environments.play.server import open_privately

    out, output = arguments["out"], arguments.output

    def show(address: str) -> None:
        output.result.print(f"The page is at {address} (on this machine only); Ctrl-C ends it.")
        open_privately(address)

    async with opened(section, section.test_split()) as found:
        if task is None:
            output.lines(printable("\n".join(await found.tasks())))
            return
        async with found.one() as env:
            episode = await play_in_browser(env, task, arguments["seed"], path=out, show=show)
    if episode is not None:
        done = "solved" if episode.success else episode.fault or "not solved"
        output.lines(printable(f"{done}, saved in {out}" if out else str(done)))
