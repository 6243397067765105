"""``swarm-ui eval``: success over splits and seeds, with intervals."""

from __future__ import annotations

from swarm_ui.cli import exits, flags, playing
from swarm_ui.cli.commands.ending import end, planned
from swarm_ui.cli.comparing import outcomes_of
from swarm_ui.cli.output import Output
from swarm_ui.cli.playing import Work


def evaluate(
    env: flags.Environment = None,
    task: flags.Task = None,
    split: flags.Splits = None,
    seed: flags.Seeds = None,
    suite: flags.Suite = None,
    episodes: flags.Episodes = None,
    max_steps: flags.MaxSteps = None,
    data: flags.Data = None,
    model: flags.Model = None,
    url: flags.Url = None,
    adapters: flags.Adapters = None,
    agents: flags.Agents = None,
    rounds: flags.Rounds = None,
    edges: flags.Edges = None,
    views: flags.Views = None,
    vote: flags.Vote = None,
    temperature: flags.Temperature = None,
    config: flags.ConfigFile = None,
    settings: flags.Set = None,
    against: flags.Against = None,
    out: flags.Out = None,
    concurrency: flags.Concurrency = None,
    fail_under: flags.FailUnder = None,
    resume: flags.Resume = None,
    dry_run: flags.DryRun = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:
    """Measure success over splits and seeds, with 95 % intervals.

    Each seed draws episodes of its own; equal settings give equal episodes, so two runs can be
    compared. Example: [bold]swarm-ui eval phone --split parameters --split apps -n 100[/]
    """
    output = Output(machine=json, quiet=quiet)
    given = {
        "env": env, "task": task, "suite": suite, "episodes": episodes, "max_steps": max_steps,
        "data": data, "model": model, "url": url, "adapters": adapters, "agents": agents,
        "rounds": rounds, "edges": edges, "views": views, "vote": vote,
        "temperature": temperature, "out": out, "concurrency": concurrency,
        "fail_under": fail_under,
    }  # fmt: skip
    if against is not None:
        outcomes_of(str(against))  # what cannot be read is told before anything is played
    if resume is not None:
        overrides = flags.draft(None, settings, **given)
        fixed = {"--config": config, "--split": split, "--seed": seed}
        more = [name for name, value in fixed.items() if value]
        work, directory = playing.taken_up(resume, "eval", overrides, more)
    else:
        chosen = flags.settled(flags.draft(config, settings, **given), splits=split or ())
        place = chosen.environment
        splits = tuple(split or [place.split or playing.first_split(place)])
        work = Work(chosen, splits, tuple(seed or [place.seed]), "eval")
        directory = None
    if dry_run:
        planned(work, output, directory)
        return exits.OK
    directory = directory or playing.begin(work)
    return end(work, directory, playing.finish(work, directory, output), output, against)
