"""``swarm-ui eval``: success over splits and seeds, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import exits, flags, playing
from swarm_ui.cli.commands.ending import end, planned
from swarm_ui.cli.output import Output
from swarm_ui.cli.playing import Work


def evaluate(
    env: flags.Environment = None,
    task: Annotated[list[str] | None, typer.Option("--task", metavar="NAME", help="only this one; "
                    "repeatable", rich_help_panel=flags.WHERE)] = None,
    split: Annotated[list[str] | None, typer.Option("--split", metavar="NAME", help="which "
                     "episodes; repeatable", rich_help_panel=flags.WHERE)] = None,
    seed: Annotated[list[int] | None, typer.Option("--seed", help="of a choice of episodes; "
                    "repeatable", rich_help_panel=flags.WHERE)] = None,
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
    against: Annotated[Path | None, typer.Option(metavar="RUN", help="compare with this run, "
                       "episode by episode", rich_help_panel=flags.HOW)] = None,
    out: flags.Out = None,
    concurrency: flags.Concurrency = None,
    fail_under: flags.FailUnder = None,
    resume: flags.Resume = None,
    dry_run: flags.DryRun = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:  # fmt: skip
    """Measure success over splits and seeds, with 95 % intervals.

    Each seed draws episodes of its own; equal settings give equal episodes, so two runs can be
    compared. Example: [bold]swarm-ui eval phone --split parameters --split apps -n 100[/]
    """
    output = Output(machine=json, quiet=quiet)
    if resume is not None:
        work, directory = playing.taken_up(resume, "eval")
    else:
        chosen = flags.settled(
            config, settings, env=env, task=task, suite=suite, episodes=episodes,
            max_steps=max_steps, data=data, model=model, url=url, adapters=adapters,
            agents=agents, rounds=rounds, edges=edges, views=views, vote=vote,
            temperature=temperature, out=out, concurrency=concurrency, fail_under=fail_under,
        )  # fmt: skip
        place = chosen.environment
        splits = tuple(split or [place.split or playing.first_split(place)])
        work = Work(chosen, splits, tuple(seed or [place.seed]), "eval")
        for name in splits:
            playing.check(playing.with_split(chosen, name))
        if dry_run:
            planned(work, output)
            return exits.OK
        directory = playing.begin(work)
    return end(work, directory, playing.finish(work, directory, output), output, against)
