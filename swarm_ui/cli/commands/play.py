"""``swarm-ui play``: do a task by hand."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Annotated

import typer

from swarm_ui.cli import exits, flags
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.environments import spec_of


def play(
    env: Annotated[str, typer.Argument(metavar="ENV", help="phone, miniwob or module:factory",
                                  autocompletion=flags.one_of("phone", "miniwob"))],
    task: Annotated[str | None, typer.Argument(metavar="TASK",
                                          help="task to do; without it, tasks are listed",
                                          autocompletion=flags.tasks)]
    = None,
    seed: Annotated[int, typer.Option(metavar="N", help="seed of the episode")] = 0,
    browser: Annotated[
        bool, flags.declare("--browser", help="play on a web page, with the mouse", panel="")
    ] = False,
    port: Annotated[int, typer.Option(metavar="N", help="port of the page; 0: any free port")] = 0,
    out: Annotated[
        Path | None,
        flags.declare("--out", "-o", value="FILE", panel="",
                     help="JSON lines file to add the episode to"),
    ] = None,
    actor: Annotated[
        str, flags.declare(value="NAME", help="name of the player, stored with the episode",
                          panel="")
    ] = "person",
) -> int:  # fmt: skip
    """Do a task by hand, in the terminal or on a web page, and record it as an episode.

    Example: [bold]swarm-ui play phone contacts-add --browser[/]
    """
    import asyncio

    from swarm_ui.environments.play.__main__ import play as played

    if task is not None and (mistake := spec_of(env).unknown_task(task)):
        raise ConfigError(mistake)
    given = Namespace(env=env, task=task, seed=seed, browser=browser, port=port, out=out,
                      actor=actor)  # fmt: skip
    asyncio.run(played(given))
    return exits.OK
