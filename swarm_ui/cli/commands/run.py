"""``swarm-ui run``: act in one task, or in a suite of them."""

from __future__ import annotations

from typing import Annotated

import typer

from swarm_ui.cli import exits, flags, playing
from swarm_ui.cli.commands.ending import end, planned
from swarm_ui.cli.output import Output
from swarm_ui.cli.playing import Work


def run(
    env: flags.Environment = None,
    task: Annotated[list[str] | None, typer.Argument(metavar="TASK",
                                                     help="none: the suite")] = None,
    split: Annotated[str | None, typer.Option(metavar="NAME", help="which episodes",
                                              rich_help_panel=flags.WHERE)] = None,
    seed: Annotated[int | None, typer.Option(help="of the choice of episodes",
                                             rich_help_panel=flags.WHERE)] = None,
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
) -> int:  # fmt: skip
    """Act in one task, or in a suite of them; keep every episode and write a report.

    Example: [bold]swarm-ui run phone contacts-add --agents 4 --vote probability --views shuffle[/]
    """
    output = Output(machine=json, quiet=quiet)
    if resume is not None:
        work, directory = playing.taken_up(resume, "run")
    else:
        chosen = flags.settled(
            config, settings, env=env, task=task, split=split, seed=seed, suite=suite,
            episodes=episodes, max_steps=max_steps, data=data, model=model, url=url,
            adapters=adapters, agents=agents, rounds=rounds, edges=edges, views=views, vote=vote,
            temperature=temperature, out=out, concurrency=concurrency, fail_under=fail_under,
        )  # fmt: skip
        playing.check(chosen)
        place = chosen.environment
        work = Work(chosen, (place.split or playing.first_split(place),), (place.seed,), "run")
        if dry_run:
            planned(work, output)
            return exits.OK
        directory = playing.begin(work)
    return end(work, directory, playing.finish(work, directory, output), output)
