"""``swarm-ui run``: act in one task, or in a suite of them."""

from __future__ import annotations

from swarm_ui.cli import exits, flags, playing
from swarm_ui.cli.commands.ending import end, planned
from swarm_ui.cli.output import Output
from swarm_ui.cli.playing import Work


def run(
    env: flags.Environment = None,
    task: flags.Tasks = None,
    split: flags.Split = None,
    seed: flags.Seed = None,
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
    out: flags.Out = None,
    concurrency: flags.Concurrency = None,
    fail_under: flags.FailUnder = None,
    resume: flags.Resume = None,
    dry_run: flags.DryRun = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:
    """Act in one task, or in a suite of them; keep every episode and write a report.

    Example: [bold]swarm-ui run phone contacts-add --agents 4 --vote probability --views shuffle[/]
    """
    output = Output(machine=json, quiet=quiet)
    given = {
        "env": env, "task": task, "split": split, "seed": seed, "suite": suite,
        "episodes": episodes, "max_steps": max_steps, "data": data, "model": model, "url": url,
        "adapters": adapters, "agents": agents, "rounds": rounds, "edges": edges, "views": views,
        "vote": vote, "temperature": temperature, "out": out, "concurrency": concurrency,
        "fail_under": fail_under,
    }  # fmt: skip
    if resume is not None:
        overrides = flags.draft(None, settings, **given)
        work, directory = playing.taken_up(resume, "run", overrides, ["--config"] * bool(config))
    else:
        chosen = flags.settled(flags.draft(config, settings, **given))
        place = chosen.environment
        work = Work(chosen, (place.split or playing.first_split(place),), (place.seed,), "run")
        directory = None
    if dry_run:
        planned(work, output, directory)
        return exits.OK
    directory = directory or playing.begin(work)
    return end(work, directory, playing.finish(work, directory, output), output)
