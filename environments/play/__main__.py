"""swarm-ui play ENV TASK [--seed 7] [--browser] [--out episodes.jsonl]"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from swarm_ui.environment import Environment
from swarm_ui.environments.play import play_in_browser, play_in_terminal
from swarm_ui.errors import ConfigError, SwarmError


@asynccontextmanager
async def phone(screenshots: bool) -> AsyncIterator[Environment]:
    from swarm_ui.environments.phone import PhoneEnvironment

    yield PhoneEnvironment(screenshots=screenshots)


@asynccontextmanager
async def miniwob(screenshots: bool) -> AsyncIterator[Environment]:
    from swarm_ui.environments.miniwob import MiniWobBrowser

    async with MiniWobBrowser(pages=1) as browser:
        yield browser.environments[0]


ENVIRONMENTS: dict[str, Callable[[bool], Any]] = {"phone": phone, "miniwob": miniwob}


@asynccontextmanager
async def opened(name: str, screenshots: bool) -> AsyncIterator[Environment]:
    """The environment with this name, or the one that ``module:callable`` makes."""
    module, _, attribute = name.partition(":")
    if name in ENVIRONMENTS:
        async with ENVIRONMENTS[name](screenshots) as env:
            yield env
        return
    if not attribute:
        raise ConfigError(
            f"no environment {name!r}: expected {', '.join(ENVIRONMENTS)} or module:callable"
        )
    try:
        made = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"cannot make {name!r}: {error}") from error
    try:
        yield made
    finally:
        await made.close()


def show(address: str) -> None:
    print(f"The page is at {address} (on this machine only); Ctrl-C ends it.")
    webbrowser.open(address)


async def play(arguments: argparse.Namespace) -> None:
    async with opened(arguments.env, arguments.browser) as env:
        if arguments.task is None:
            print("\n".join(env.tasks))
            return
        options = {"path": arguments.out, "actor": arguments.actor}
        if arguments.browser:
            episode = await play_in_browser(
                env, arguments.task, arguments.seed, show=show, port=arguments.port, **options
            )
            if episode is not None:
                done = "solved" if episode.success else episode.fault or "not solved"
                print(f"{done}{f', saved in {arguments.out}' if arguments.out else ''}")
        else:
            await play_in_terminal(env, arguments.task, arguments.seed, **options)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="swarm-ui play", description="Do a task by hand.")
    parser.add_argument("env", metavar="ENV", help=f"{', '.join(ENVIRONMENTS)} or module:callable")
    parser.add_argument("task", metavar="TASK", nargs="?", help="if left out, the tasks are listed")
    parser.add_argument("--seed", type=int, default=0, help="seed of the episode (0)")
    parser.add_argument("--browser", action="store_true", help="play in a browser")
    parser.add_argument("--port", type=int, default=0, help="port of the page (any free port)")
    parser.add_argument("--out", metavar="FILE", help="JSON lines file to append the episode to")
    parser.add_argument("--actor", default="person", help="name of the player in the record")
    try:
        asyncio.run(play(parser.parse_args(argv)))
    except SwarmError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print()
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
