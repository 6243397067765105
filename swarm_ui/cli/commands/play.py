"""``swarm-ui play``: do a task by hand."""

from __future__ import annotations

import asyncio
from json import dumps as json_text
from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import exits, flags
from swarm_ui.environments.benchmark import Benchmark
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import kind_of_environment, opened
from swarm_ui.experiment.loading import load
from swarm_ui.experiment.terminal import printable


def play(
    words: Annotated[list[str], typer.Argument(metavar="ENV [TASK] [SETTING=VALUE...]", help="an "
                     "environment; a task to do (without it, tasks are listed); settings of "
                     "the environment, such as env.data=TASKS.json",
                     autocompletion=flags.words_of)],
    seed: Annotated[int, typer.Option(metavar="N", help="seed of the episode")] = 0,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535,
                                      help="port of the page; 0: any free port")] = 0,
    out: Annotated[
        Path | None,
        flags.declare("--out", "-o", value="FILE", panel="",
                     help="JSON Lines file to append the episode to"),
    ] = None,
    actor: Annotated[
        str, flags.declare(value="NAME", help="name of the player, stored with the episode",
                          panel="")
    ] = "person",
) -> int:  # fmt: skip
    """Do a task by hand on a web page, and record it as an episode.

    Example: [bold]swarm-ui play phone contacts-add --out mine.jsonl[/]
    """
    env, *rest = [word for word in words if "=" not in word] or [""]
    task, given = next(iter(rest), None), [word for word in words if "=" in word]
    if "screenshots" in kind_of_environment(env).model_fields:
        given = ["env.screenshots=true", *given]
    section = load(overrides=[f"ENV env.name={json_text(env)}", *given]).env
    if task is not None and (mistake := section.unknown_task(task)):
        raise ConfigError(mistake)
    asyncio.run(_play(section, task, seed, port, out, actor))
    return exits.OK


async def _play(
    section: Benchmark,
    task: str | None,
    seed: int,
    port: int,
    out: Path | None,
    actor: str,
) -> None:
    from swarm_ui.environments.play import play_in_browser

    async with opened(section, section.test_split()) as found:
        if task is None:
            print(printable("\n".join(await found.tasks())))
            return
        async with found.one() as env:
            episode = await play_in_browser(
                env, task, seed, path=out, actor=actor, port=port, show=_show
            )
    if episode is not None:
        done = "solved" if episode.success else episode.fault or "not solved"
        print(printable(f"{done}, saved in {out}" if out else str(done)))


def _show(address: str) -> None:
    from swarm_ui.environments.play.server import open_privately

    print(f"The page is at {address} (on this machine only); Ctrl-C ends it.")
    open_privately(address)
