"""``swarm-ui play``: do a task by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import exits, flags
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments import environment_findings, spec_of
from swarm_ui.experiment.terminal import printable


def play(
    env: Annotated[str, typer.Argument(metavar="ENV", help="phone, miniwob, web or module:factory",
                                  autocompletion=flags.named("environments", "phone",
                                                             "miniwob", "web"))],
    task: Annotated[str | None, typer.Argument(metavar="TASK",
                                          help="task to do; without it, tasks are listed",
                                          autocompletion=flags.tasks)]
    = None,
    data: Annotated[
        str,
        flags.declare("--data", value="FILE", help="web: file of tasks (default: none)", panel=""),
    ] = "",
    seed: Annotated[int, typer.Option(metavar="N", help="seed of the episode")] = 0,
    browser: Annotated[
        bool, flags.declare("--browser", help="play on a web page, with the mouse", panel="")
    ] = False,
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
    """Do a task by hand, in the terminal or on a web page, and record it as an episode.

    Example: [bold]swarm-ui play phone contacts-add --browser[/]
    """
    if port and not browser:
        raise ConfigError("--port: only a web page has one; add --browser")
    section = EnvironmentSection(name=env, data=data, screenshots=browser)
    for _, mistake in environment_findings(section):
        raise ConfigError(mistake)
    if task is not None and (mistake := spec_of(env).unknown_task(task)):
        raise ConfigError(mistake)
    asyncio.run(_play(section, task, seed, port, out, actor))
    return exits.OK


async def _play(
    section: EnvironmentSection,
    task: str | None,
    seed: int,
    port: int,
    out: Path | None,
    actor: str,
) -> None:
    from swarm_ui.environments.play import play_in_browser, play_in_terminal

    async with spec_of(section.name).opened(section) as opened:
        if task is None:
            print(printable("\n".join(await opened.tasks())))
            return
        async with opened.one() as env:
            if not section.screenshots:
                await play_in_terminal(env, task, seed, path=out, actor=actor)
                return
            episode = await play_in_browser(
                env, task, seed, path=out, actor=actor, port=port, show=_show
            )
    if episode is not None:
        done = "solved" if episode.success else episode.fault or "not solved"
        print(printable(f"{done}, saved in {out}" if out else str(done)))


def _show(address: str) -> None:
    from swarm_ui.environments.play.private_page import open_privately

    print(f"The page is at {address} (on this machine only); Ctrl-C ends it.")
    open_privately(address)
